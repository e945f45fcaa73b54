// Running the plan in the simulator: what to check, progress, findings, counters a kernel.
#pragma once

#include <QWidget>

#include "gui/model/session.h"
#include "gui/view/table_page.h"

class QCheckBox;
class QLabel;
class QProgressBar;
class QPushButton;
class QComboBox;

namespace stitchwork::gui {

class RunPanel : public QWidget {
  Q_OBJECT
 public:
  RunPanel(Session& session, QWidget* parent = nullptr);
  void run();
  TablePage& counters() { return *counters_; }
  QString verdict() const;

 signals:
  /// Value of a counter by step within [0, 1] is to be shown on the graph; "" for none.
  void overlay_chosen(const QString& counter);

 private:
  void follow_jobs();
  void show_result();
  void say(const QString& text);

  Session& session_;
  QPushButton *run_, *cancel_, *copy_;
  QCheckBox *check_, *race_, *init_;
  QComboBox* overlay_;
  QProgressBar* progress_;
  QLabel* verdict_;
  TablePage* counters_;
};

}  // namespace stitchwork::gui
