#include "gui/model/outline_model.h"

#include "gui/model/record_model.h"
#include "gui/model/tables.h"

namespace stitchwork::gui {

void OutlineModel::reset(PlannedPtr planned) {
  beginResetModel();
  planned_ = std::move(planned);
  rows_.clear();
  times_.clear();
  if (planned_) {
    const auto& nodes = planned_->folds->nodes;
    rows_.resize(nodes.size());
    times_.resize(nodes.size());
    for (std::size_t i = nodes.size(); i-- > 0;) {
      const FoldNode& n = nodes[i];
      for (std::size_t r = 0; r < n.children.size(); ++r)
        rows_[static_cast<std::size_t>(n.children[r])] = static_cast<int>(r);
      if (n.kind == FoldKind::kStep)
        times_[i] = planned_->steps[static_cast<std::size_t>(n.step)].predicted_us;
      if (n.kind == FoldKind::kLayer || n.kind == FoldKind::kBody || n.kind == FoldKind::kModel)
        for (int child : n.children) times_[i] += times_[static_cast<std::size_t>(child)];
    }
  }
  if (planned_) times_[0] = planned_->plan->predicted_us;  // with the gaps between launches
  endResetModel();
}

QModelIndex OutlineModel::index_of(int node) const {
  if (!planned_ || node < 0) return {};
  return createIndex(rows_[static_cast<std::size_t>(node)], 0, static_cast<quintptr>(node));
}

QModelIndex OutlineModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  const int node = parent.isValid()
                       ? planned_->folds->node(this->node(parent)).children[static_cast<std::size_t>(row)]
                       : 0;
  return createIndex(row, column, static_cast<quintptr>(node));
}

QModelIndex OutlineModel::parent(const QModelIndex& index) const {
  if (!index.isValid()) return {};
  return index_of(planned_->folds->node(node(index)).parent);
}

int OutlineModel::rowCount(const QModelIndex& parent) const {
  if (!planned_ || parent.column() > 0) return 0;
  if (!parent.isValid()) return 1;
  return static_cast<int>(planned_->folds->node(node(parent)).children.size());
}

int OutlineModel::columnCount(const QModelIndex&) const { return 2; }

QVariant OutlineModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const FoldNode& n = planned_->folds->node(node(index));
  if (role == kKeyRole) return node(index);
  if (role == Qt::TextAlignmentRole && index.column() == 1)
    return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole) {
    if (n.kind == FoldKind::kOp) {
      const Node& op = planned_->computation(n.step).node(n.op);
      return QString::fromStdString(std::string(def(op.op).name) + " " + to_text(op.shape));
    }
    return tr("%1: %2 ops; time modelled").arg(QString::fromUtf8(name(n.kind).data())).arg(n.ops);
  }
  if (role != Qt::DisplayRole) return {};
  if (index.column() == 0) return QString::fromStdString(n.label);
  if (n.kind == FoldKind::kGroup || n.kind == FoldKind::kOp) return {};
  return us(times_[static_cast<std::size_t>(node(index))]);
}

QVariant OutlineModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == 0 ? tr("Outline") : tr("Time");
}

}  // namespace stitchwork::gui
