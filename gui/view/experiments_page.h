// Runs that were recorded: a store (SQLite), its trials, two of them compared.
#pragma once

#include <QWidget>
#include <memory>

#include "experiments/report_data.h"
#include "gui/model/session.h"
#include "gui/view/figure_pane.h"
#include "gui/view/table_page.h"

class QLabel;
class QPushButton;
class QTabWidget;

namespace stitchwork::gui {

class ExperimentsPage : public QWidget {
  Q_OBJECT
 public:
  explicit ExperimentsPage(Session& session, QWidget* parent = nullptr);
  void open_store(const QString& file);
  TablePage& trials() { return *trials_; }
  TablePage& comparison() { return *comparison_; }
  FigurePane& figures() { return *figures_; }
  QTabWidget& below() { return *below_; }  ///< the comparison, the figures
  QString message() const;
  /// The report of the store shown, as `stitchwork report` writes it, in the form of the file's ending.
  void write_report(const QString& file);

 private:
  void show_data();
  void compare();
  void show_figures();

  Session& session_;
  std::shared_ptr<const ReportData> data_;
  QString file_;
  QLabel* file_label_;
  QPushButton *copy_, *report_;
  TablePage *trials_, *comparison_;
  FigurePane* figures_;
  QTabWidget* below_;
};

}  // namespace stitchwork::gui
