#include "analysis/stitching/row_work.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "analysis/stitching/memory_order.h"
#include "core/base/at.h"

namespace stitchwork::astitch {
namespace {

/// Of an element of what `op` is computed from, element by element: the widest of these arrays. A bf16 row
/// that is converted and reduced in fp32 moves as bf16.
int bytes_in_memory(const Nodes& nodes, NodeId op) {
  // A choice, not measured: what stands between a reduction and its inputs is rarely more; it bounds the
  // walk.
  constexpr std::size_t kMostOps = 64;
  const std::int64_t elements = nodes[op].elements;
  std::set<NodeId> seen{op};
  std::vector<NodeId> open{op};
  int bytes = 0;
  while (!open.empty() && seen.size() < kMostOps) {
    const NodeId id = open.back();
    open.pop_back();
    const Node& node = nodes.node(id);
    bool walked = false;
    if (nodes[id].member && !nodes[id].reduction)
      for (const NodeId operand : node.operands) {
        if (nodes[operand].elements != elements || nodes.node(operand).shape.is_tuple) continue;
        walked = true;
        if (seen.insert(operand).second) open.push_back(operand);
      }
    if (!walked && !nodes[id].transparent && !nodes[id].immediate)
      bytes = std::max(bytes, byte_size(node.shape.dtype));
  }
  return bytes > 0 ? bytes : byte_size(nodes.node(op).shape.dtype);
}

/// The members of which values of more than one element lead to `first` or from it: an optimiser's updates of
/// many tensors are one stitch op, and a thread has elements of one tensor at a time.
/// Ascending.
std::vector<NodeId> tied_to(const Nodes& nodes, const std::vector<NodeId>& members, NodeId first) {
  const auto one = [&](NodeId id) { return nodes[id].elements <= 1; };
  const auto ties = [&](NodeId id) {
    if (one(id)) return false;
    const std::vector<NodeId>& operands = nodes.node(id).operands;
    if (nodes[id].transparent) return !std::all_of(operands.begin(), operands.end(), one);
    return std::binary_search(members.begin(), members.end(), id);
  };
  std::vector<bool> seen(nodes.facts.size(), false);
  std::vector<NodeId> found{first};
  seen[at(first)] = true;
  for (std::size_t next = 0; next < found.size(); ++next)
    for (const std::vector<NodeId>* ids : {&nodes.node(found[next]).operands, &nodes[found[next]].users})
      for (const NodeId other : *ids) {
        if (seen[at(other)] || !ties(other)) continue;
        seen[at(other)] = true;
        found.push_back(other);
      }
  std::ranges::sort(found);
  return found;
}

/// Whether an operand of `id`, which has the domain's size and order, is of a value a row. Sizes say so, but
/// where the domain has as many rows as cols: there the map does.
bool is_of_rows(const Nodes& nodes, NodeId id, std::size_t operand, const GroupDomain& domain) {
  const NodeId value = nodes.node(id).operands[operand];
  if (nodes[value].elements != domain.rows) return false;
  if (domain.rows != domain.cols) return true;
  const std::optional<IndexMap>& edge = nodes[id].edges[operand].map;
  if (!edge || !edge->constraints.empty() || !edge->runtime.empty()) return false;
  IndexMap place;  // (row, col) -> index of id
  place.dims = {domain.rows, domain.cols};
  place.results = delinearize(IndexExpr::dim(0) * domain.cols + IndexExpr::dim(1), nodes.node(id).shape.dims);
  const IndexMap read = compose(place, *edge);
  return !simplify(linearize(read.results, nodes.node(value).shape.dims), read).uses_dim(1);
}

/// Whether a map (broadcast, reshape, slice, ...) to the domain's size leaves its operand's elements in the
/// domain's order, or is of a value a row.
bool keeps_order(const Nodes& nodes, NodeId id, const GroupDomain& domain) {
  const Op op = nodes.node(id).op;
  if (op == Op::kIota) return true;
  const std::vector<NodeId>& operands = nodes.node(id).operands;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::int64_t elements = nodes[operands[i]].elements;
    if (elements == nodes[id].elements ? op != Op::kReshape && op != Op::kBitcast
                                       : elements > 1 && !is_of_rows(nodes, id, i, domain))
      return false;
  }
  return true;
}

/// The same, but for what is smaller: whether the elements of an array of the domain's size stay in order.
bool keeps_arrays(const Nodes& nodes, NodeId id) {
  const Op op = nodes.node(id).op;
  const std::vector<NodeId>& operands = nodes.node(id).operands;
  return std::all_of(operands.begin(), operands.end(), [&](NodeId operand) {
    if (nodes[operand].elements == nodes[id].elements)
      return op == Op::kReshape || op == Op::kBitcast || op == Op::kCopy;
    return op == Op::kBroadcast || nodes[operand].elements <= 1;
  });
}

/// Whether neighbours in the memory of what the transpose `id` of the domain's size reads are neighbours
/// along the domain's rows.
bool turns_rows(const Nodes& nodes, NodeId id, const GroupDomain& domain) {
  const Node& node = nodes.node(id);
  if (node.op != Op::kTranspose || domain.kind != GroupDomain::Kind::kRows) return false;
  const std::vector<std::int64_t>& order = node.attrs.dimensions;
  const auto last = static_cast<std::int64_t>(order.size()) - 1;
  std::int64_t further = 1;  // elements of the result from one of these neighbours to the next
  for (std::size_t d = order.size(); d-- > 0 && order[d] != last;) further *= node.shape.dims[d];
  return further == domain.cols && domain.rows > 1;
}

/// The arrays in memory that the member `id` of the domain's size reads or is.
class ArrayBytes {
 public:
  ArrayBytes(const Nodes& nodes, const StitchOp& op, const GroupDomain& domain, RowWork& work)
      : nodes_(nodes), op_(op), domain_(domain), work_(work) {}

  void visit(NodeId id) {
    const std::vector<NodeId>& operands = nodes_.node(id).operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const NodeId operand = operands[i];
      const std::int64_t elements = nodes_[operand].elements;
      const bool of_cols = elements > 1 && elements == domain_.cols && elements != work_.elements &&
                           !(domain_.rows == domain_.cols && is_of_rows(nodes_, id, i, domain_));
      if ((elements == work_.elements || of_cols) && in_memory(operand)) add(operand);
      if (of_cols) visit_cols(operand);
    }
    if (!in_op(id) || nodes_[id].elements != work_.elements || !is_read_outside(id)) return;
    written_.push_back(byte_size(nodes_.node(id).shape.dtype));
    add(id);
  }
  /// Of an element of the arrays of the domain's size that are written.
  const std::vector<int>& written() const { return written_; }
  /// Of a col: of the arrays of that many elements that are read.
  int col_bytes() const { return col_bytes_; }

 private:
  bool in_op(NodeId id) const { return std::binary_search(op_.members.begin(), op_.members.end(), id); }
  bool in_memory(NodeId id) const {
    return !nodes_.node(id).shape.is_tuple && !nodes_[id].transparent && !nodes_[id].immediate && !in_op(id);
  }
  bool is_read_outside(NodeId id) const {
    const std::vector<NodeId>& users = nodes_[id].users;
    return nodes_[id].buffer_needed || std::any_of(users.begin(), users.end(), [&](NodeId user) {
             return !nodes_[user].transparent && !in_op(user);
           });
  }
  /// What a value a col is made from.
  void visit_cols(NodeId first) {
    std::vector<NodeId> open{first};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (nodes_[id].elements != domain_.cols || !of_cols_.insert(id).second) continue;
      if (in_memory(id))
        col_bytes_ += byte_size(nodes_.node(id).shape.dtype);
      else if (!nodes_[id].reduction)
        open.insert(open.end(), nodes_.node(id).operands.begin(), nodes_.node(id).operands.end());
    }
  }
  void add(NodeId id) {
    const int bytes = byte_size(nodes_.node(id).shape.dtype);
    work_.widest_bytes = std::max(work_.widest_bytes, bytes);
    work_.narrowest_bytes = work_.narrowest_bytes == 0 ? bytes : std::min(work_.narrowest_bytes, bytes);
  }

  const Nodes& nodes_;
  const StitchOp& op_;
  const GroupDomain& domain_;
  RowWork& work_;
  std::vector<int> written_;
  std::set<NodeId> of_cols_;
  int col_bytes_ = 0;
};

}  // namespace

GroupDomain domain_of(const Nodes& nodes, NodeId dominant) {
  GroupDomain domain;
  NodeId moved = dominant;
  domain.rows = nodes[dominant].elements;
  if (nodes[dominant].reduction) {
    const ReductionShape& shape = *nodes[dominant].reduction;
    domain.kind = lies_along_cols(nodes, dominant) ? GroupDomain::Kind::kRows : GroupDomain::Kind::kColumns;
    domain.rows = shape.rows;
    domain.cols = shape.cols;
    moved = nodes.node(dominant).operands[0];
  }
  domain.element_bytes = domain.widest_bytes = byte_size(nodes.node(moved).shape.dtype);
  if (nodes[dominant].reduction) domain.element_bytes = bytes_in_memory(nodes, moved);
  const auto& edges = nodes[dominant].edges;
  domain.guarded = std::any_of(edges.begin(), edges.end(), [](const Edge& edge) {
    return !edge.map || !edge.map->constraints.empty() || !edge.map->runtime.empty();
  });
  return domain;
}

/// What decides how long the stitch op takes: its largest reduction, or where it has none its largest op.
NodeId largest_op(const Nodes& nodes, const StitchOp& op) {
  NodeId largest = kNoNode;
  bool reduces = false;
  std::int64_t elements = -1;
  for (const NodeId id : op.members) {
    if (nodes.node(id).shape.is_tuple || (reduces && !nodes[id].reduction)) continue;
    const GroupDomain domain = domain_of(nodes, id);
    const bool first = nodes[id].reduction.has_value() && !reduces;
    if (!first && domain.rows * domain.cols <= elements) continue;
    reduces = reduces || first;
    elements = domain.rows * domain.cols;
    largest = id;
  }
  return largest;
}

/// Counted over the members tied to the domain's op that are of its size: each reduction of its rows asks for
/// a pass, and results of that size for one more.
RowWork row_work(const Nodes& nodes, const StitchOp& op, NodeId dominant, const GroupDomain& domain) {
  const std::int64_t elements = domain.rows * domain.cols;
  RowWork work;
  work.elements = elements;
  work.reductions = 0;
  ArrayBytes arrays(nodes, op, domain, work);
  std::set<NodeId> inputs;
  work.instructions = 0;
  work.in_order = work.arrays_in_order = domain.kind == GroupDomain::Kind::kRows && !domain.guarded;
  for (const NodeId id : tied_to(nodes, op.members, dominant)) {
    if (nodes[id].reduction && nodes[id].reduction->rows * nodes[id].reduction->cols == elements) {
      if (nodes[id].reduction->row_reduce) ++work.reductions;
      work.instructions += 1;
    } else if (nodes[id].elements == elements) {
      work.instructions += static_cast<double>(instructions(nodes, id));
    } else {
      continue;
    }
    arrays.visit(id);
    if (nodes[id].transparent || nodes.node(id).op == Op::kTranspose) {
      work.in_order = work.in_order && keeps_order(nodes, id, domain);
      work.arrays_in_order = work.arrays_in_order && keeps_arrays(nodes, id);
      if (turns_rows(nodes, id, domain)) work.turned_bytes += byte_size(nodes.node(id).shape.dtype);
    }
    for (const NodeId operand : nodes.node(id).operands)
      if (nodes[operand].elements == elements && !nodes[operand].transparent && !nodes[operand].immediate &&
          !std::binary_search(op.members.begin(), op.members.end(), operand))
        inputs.insert(operand);
  }
  work.inputs = std::max(1, static_cast<int>(inputs.size()));
  work.passes = std::max(1, work.reductions + (arrays.written().empty() ? 0 : 1));
  std::multiset<int> replaced;
  for (const NodeId id : inputs) {
    work.staged_bytes += byte_size(nodes.node(id).shape.dtype);
    work.staged_input_bytes += byte_size(nodes.node(id).shape.dtype);
    replaced.insert(byte_size(nodes.node(id).shape.dtype));
  }
  work.staged_col_bytes = arrays.col_bytes();
  for (const int bytes : arrays.written())
    if (const auto found = replaced.find(bytes); found != replaced.end())
      replaced.erase(found);
    else
      work.staged_bytes += bytes;
  return work;
}

double group_instructions(const Nodes& nodes, const std::vector<NodeId>& members, NodeId dominant) {
  double total = 0;
  for (const NodeId id : tied_to(nodes, members, dominant))
    if (nodes[id].elements == nodes[dominant].elements)
      total += nodes[id].reduction ? 1 : static_cast<double>(instructions(nodes, id));
  return std::max(total, chain_instructions(nodes, members, dominant));
}

double chain_instructions(const Nodes& nodes, const std::vector<NodeId>& members, NodeId dominant) {
  const auto elements = static_cast<double>(std::max<std::int64_t>(1, nodes[dominant].elements));
  double total = 0;
  std::set<NodeId> seen{dominant};
  std::vector<NodeId> open{dominant};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    const double each = static_cast<double>(nodes[id].elements) / elements;
    total += static_cast<double>(instructions(nodes, id)) * std::min(1.0, each);
    for (const NodeId operand : nodes.node(id).operands) {
      const bool inside =
          nodes[operand].transparent || std::binary_search(members.begin(), members.end(), operand);
      if (!inside || nodes[operand].reduction || nodes[operand].elements <= 1) continue;
      if (seen.insert(operand).second) open.push_back(operand);
    }
  }
  return total;
}

}  // namespace stitchwork::astitch
