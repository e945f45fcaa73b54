// A table whose cells are made when they are looked at: kernels, decisions, counters, advice, problems.
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <QVariant>
#include <functional>
#include <vector>

namespace stitchwork::gui {

enum Role {
  kSortRole = Qt::UserRole,  ///< what a column sorts by; the text where a cell has none
  kKeyRole,                  ///< what the row is about, for selections: index of step, op, decision, ...
  kShareRole,                ///< 0 to 1
  kBarRole,                  ///< 0 to 1: length of a bar beside the text
  kBadgesRole,               ///< QString of badge letters
};

struct Column {
  QString title;
  QString tip;          ///< teaches the word
  bool number = false;  ///< aligned right
};

class RecordModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  /// Value of a cell for a role; an invalid one where it has none.
  using Cell = std::function<QVariant(int row, int column, int role)>;

  using QAbstractTableModel::QAbstractTableModel;
  void reset(std::vector<Column> columns, int rows, Cell cell);
  void clear() { reset(columns_, 0, {}); }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  std::vector<Column> columns_;
  int rows_ = 0;
  Cell cell_;
};

/// The visible columns of `model` as comma-separated values, quoted where needed, with a line of titles.
QString to_csv(const QAbstractItemModel& model);

}  // namespace stitchwork::gui
