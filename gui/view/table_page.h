// A table with a line to filter it, sorted by its columns; keys of rows go out, selections come in.
#pragma once

#include <QSortFilterProxyModel>
#include <QTableView>
#include <QWidget>

#include "gui/model/record_model.h"

class QLineEdit;
class QLabel;
class QHBoxLayout;

namespace stitchwork::gui {

class TablePage : public QWidget {
  Q_OBJECT
 public:
  /// `empty`: what is said where there are no rows, and what to do about it.
  explicit TablePage(const QString& empty, QWidget* parent = nullptr);

  RecordModel& model() { return model_; }
  QTableView& view() { return *view_; }
  QSortFilterProxyModel& proxy() { return proxy_; }
  QHBoxLayout& header() { return *header_; }  ///< beside the filter: for buttons
  QLineEdit& filter() { return *filter_; }
  void show_filter(bool on);  ///< a table of a few rows needs none

  /// Widths by contents of the first rows; call after the model is filled.
  void fit_columns(int widest = 320);
  /// The row with this key, without telling.
  void select_key(const QVariant& key);
  QVariant current_key() const;

 signals:
  void key_selected(const QVariant& key);
  void key_activated(const QVariant& key);  ///< double-click or Return

 private:
  RecordModel model_;
  QSortFilterProxyModel proxy_;
  QTableView* view_;
  QLineEdit* filter_;
  QLabel* empty_;
  QHBoxLayout* header_;
  bool quiet_ = false, filtered_ = true;
};

}  // namespace stitchwork::gui
