// The fold tree as a tree of rows: model, layers, kernels, groups, ops.
#pragma once

#include <QAbstractItemModel>

#include "gui/model/session.h"

namespace stitchwork::gui {

class OutlineModel : public QAbstractItemModel {
  Q_OBJECT
 public:
  using QAbstractItemModel::QAbstractItemModel;
  void reset(PlannedPtr planned);
  QModelIndex index_of(int node) const;
  int node(const QModelIndex& index) const { return static_cast<int>(index.internalId()); }

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& index) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

 private:
  PlannedPtr planned_;
  std::vector<int> rows_;      ///< by node: its row among its parent's children
  std::vector<double> times_;  ///< by node, microseconds
};

}  // namespace stitchwork::gui
