#include "gui/model/record_model.h"

#include <QStringList>

namespace stitchwork::gui {

void RecordModel::reset(std::vector<Column> columns, int rows, Cell cell) {
  beginResetModel();
  columns_ = std::move(columns);
  rows_ = rows;
  cell_ = std::move(cell);
  endResetModel();
}

int RecordModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : rows_; }

int RecordModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size());
}

QVariant RecordModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rows_) return {};
  if (role == Qt::TextAlignmentRole) {
    const bool number = columns_[static_cast<std::size_t>(index.column())].number;
    return static_cast<int>((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  QVariant value = cell_(index.row(), index.column(), role);
  if (role == kSortRole && !value.isValid()) value = cell_(index.row(), index.column(), Qt::DisplayRole);
  return value;
}

QVariant RecordModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const Column& column = columns_[static_cast<std::size_t>(section)];
  if (role == Qt::DisplayRole) return column.title;
  if (role == Qt::ToolTipRole && !column.tip.isEmpty()) return column.tip;
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((column.number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  return {};
}

QString to_csv(const QAbstractItemModel& model) {
  const auto quoted = [](QString text) {
    if (!text.contains(',') && !text.contains('"') && !text.contains('\n')) return text;
    return '"' + text.replace("\"", "\"\"") + '"';
  };
  QString csv;
  QStringList cells;
  for (int c = 0; c < model.columnCount(); ++c)
    cells << quoted(model.headerData(c, Qt::Horizontal).toString());
  csv += cells.join(',') + '\n';
  for (int r = 0; r < model.rowCount(); ++r) {
    cells.clear();
    for (int c = 0; c < model.columnCount(); ++c) cells << quoted(model.index(r, c).data().toString());
    csv += cells.join(',') + '\n';
  }
  return csv;
}

}  // namespace stitchwork::gui
