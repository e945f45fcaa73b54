#include "analysis/propagation.h"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "analysis/facts.h"
#include "analysis/launch.h"
#include "core/error.h"

namespace stitchwork {
namespace {

/// The index of an array of `dims` in a domain of rows x cols elements: flat index row * cols + col.
IndexMap flat_map(const std::vector<std::int64_t>& dims, std::int64_t rows, std::int64_t cols) {
  IndexMap map;
  map.dims = {rows, cols};
  map.results = delinearize(IndexExpr::dim(0) * cols + IndexExpr::dim(1), dims);
  return simplify(std::move(map));
}

/// `map` seen as a function of the row alone (its results must not use col).
IndexMap row_only(const IndexMap& map) {
  IndexMap rows = map;
  rows.dims.resize(1);
  return rows;
}

}  // namespace

IndexMap domain_map(const Computation& computation, NodeId dominant, const ThreadMapping& mapping) {
  const Node& node = computation.node(dominant);
  if (reduces_domain(computation, dominant, mapping)) return reduction_shape(computation, dominant).input_map;
  return flat_map(node.shape.dims, mapping.rows, mapping.cols);
}

Coverage coverage(const IndexMap& map, const std::vector<std::int64_t>& extents) {
  if (!map.symbols.empty() || !map.runtime.empty() || !map.constraints.empty()) return Coverage::kPartial;
  std::int64_t elements = 1;
  for (std::int64_t extent : extents) elements *= extent;
  const std::int64_t rows = map.dims.at(0), cols = map.dims.at(1);
  if (elements == rows * cols) {
    const IndexExpr linear = simplify(linearize(map.results, extents), map);
    if (linear == simplify(IndexExpr::dim(0) * cols + IndexExpr::dim(1), map)) return Coverage::kFull;
    if (invert(map, extents)) return Coverage::kFull;
  }
  if (elements == rows && std::none_of(map.results.begin(), map.results.end(),
                                       [](const IndexExpr& e) { return e.uses_dim(1); })) {
    const IndexExpr linear = simplify(linearize(map.results, extents), map);
    if (linear == simplify(IndexExpr::dim(0), map)) return Coverage::kRows;
    if (invert(row_only(map), extents)) return Coverage::kRows;
  }
  return Coverage::kPartial;
}

IndexMap reduced_operand_map(const Computation& computation, NodeId reduce, const IndexMap& result) {
  IndexMap own_row;
  own_row.dims = result.dims;
  own_row.results = {linearize(result.results, computation.node(reduce).shape.dims), IndexExpr::dim(1)};
  return compose(own_row, reduction_shape(computation, reduce).input_map);
}

namespace {

/// Breadth-first over the edges of the group, best coverage first: a value both sliced and read whole is
/// placed by the edge that reads it whole.
class Propagation {
 public:
  Propagation(const Computation& computation, const ThreadMapping& mapping, const std::vector<NodeId>& ops)
      : computation_(computation), mapping_(mapping) {
    ops_ = ops;
    std::sort(ops_.begin(), ops_.end());
    for (NodeId op : ops_)
      for (NodeId operand : computation.node(op).operands) {
        std::vector<NodeId>& readers = users_[operand];
        if (readers.empty() || readers.back() != op) readers.push_back(op);
      }
  }

  std::map<NodeId, Placement> run(NodeId dominant) {
    const IndexMap domain = domain_map(computation_, dominant, mapping_);
    if (reduces_domain(computation_, dominant, mapping_)) {
      place(dominant, {reduction_shape(computation_, dominant).output_map, Coverage::kRows});
      offer(computation_.node(dominant).operands[0], domain);
    } else {
      place(dominant, {domain, Coverage::kFull});
    }
    drain();
    // Roots with no data flow to or from the dominant that share with it only a broadcast vector, or nothing:
    // an op with as many elements as the domain takes the flat domain itself, latest first so that producers
    // follow.
    find_tied(dominant);
    for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
      if (placed_.contains(*op) || read_by_unplaced(*op)) continue;
      if (std::binary_search(tied_.begin(), tied_.end(), *op)) continue;
      place_untied(*op);
      drain();
    }
    return std::move(placed_);
  }

 private:
  bool inside(NodeId op) const { return std::binary_search(ops_.begin(), ops_.end(), op); }

  bool read_by_unplaced(NodeId op) const {
    const auto readers = users_.find(op);
    return readers != users_.end() && std::any_of(readers->second.begin(), readers->second.end(),
                                                  [&](NodeId r) { return !placed_.contains(r); });
  }

  void find_tied(NodeId dominant) {
    std::unordered_set<NodeId> below{dominant}, above{dominant};
    const auto reads = [&](NodeId op, const std::unordered_set<NodeId>& set) {
      const std::vector<NodeId>& operands = computation_.node(op).operands;
      return std::any_of(operands.begin(), operands.end(), [&](NodeId o) { return set.contains(o); });
    };
    for (NodeId op : ops_)
      if (reads(op, below)) below.insert(op);
    for (auto op = ops_.rbegin(); op != ops_.rend(); ++op)
      if (above.contains(*op))
        for (NodeId operand : computation_.node(*op).operands) above.insert(operand);
    tied_.assign(below.begin(), below.end());
    tied_.insert(tied_.end(), above.begin(), above.end());
    std::sort(tied_.begin(), tied_.end());
  }

  void place(NodeId op, Placement placement) {
    if (placed_.emplace(op, std::move(placement)).second) expand_.push_back(op);
  }

  void offer(NodeId op, IndexMap map) {
    if (placed_.contains(op)) return;
    const Coverage how = coverage(map, computation_.node(op).shape.dims);
    offers_[static_cast<std::size_t>(how)].push_back({op, {std::move(map), how}});
  }

  void offer_as(NodeId op, const Placement& like) {
    if (!placed_.contains(op)) offers_[static_cast<std::size_t>(like.coverage)].push_back({op, like});
  }

  void drain() {
    for (;;) {
      while (!expand_.empty()) {
        const NodeId op = expand_.front();
        expand_.pop_front();
        if (!inside(op)) {
          to_consumers(op);
          continue;
        }
        to_producers(op);
        to_consumers(op);
      }
      auto best =
          std::find_if(offers_.begin(), offers_.end(), [](const auto& queue) { return !queue.empty(); });
      if (best == offers_.end()) return;
      auto [op, placement] = std::move(best->front());
      best->pop_front();
      place(op, std::move(placement));
    }
  }

  void to_producers(NodeId op) {
    const Node& node = computation_.node(op);
    const Placement here = placed_.at(op);
    if (def(node.op).cls == OpClass::kReduce) {
      reduce_operand(node, here);
      return;
    }
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const NodeId operand = node.operands[i];
      if (placed_.contains(operand)) continue;
      if (is_elementwise(node.op) && computation_.node(operand).shape.dims == node.shape.dims) {
        offer_as(operand, here);
      } else if (auto map = operand_map(computation_, op, static_cast<int>(i))) {
        offer(operand, compose(here.map, *map));
      }
    }
  }

  /// A reduction placed by its result's rows takes its operand along if it reduces exactly the domain's cols.
  void reduce_operand(const Node& node, const Placement& here) {
    if (here.coverage != Coverage::kRows && !(here.coverage == Coverage::kFull && mapping_.cols == 1)) return;
    if (!reduces_domain(computation_, node.id, mapping_)) return;
    offer(node.operands[0], reduced_operand_map(computation_, node.id, here.map));
  }

  void to_consumers(NodeId op) {
    const auto readers = users_.find(op);
    if (readers == users_.end()) return;
    const Placement here = placed_.at(op);
    if (here.coverage == Coverage::kPartial) return;
    for (NodeId reader : readers->second)
      if (!placed_.contains(reader)) to_consumer(op, here, computation_.node(reader));
  }

  void to_consumer(NodeId op, const Placement& here, const Node& reader) {
    const auto position =
        std::find(reader.operands.begin(), reader.operands.end(), op) - reader.operands.begin();
    const std::vector<std::int64_t>& dims = computation_.node(op).shape.dims;
    switch (def(reader.op).cls) {
      case OpClass::kReduce:
        if (position == 0) reduce_consumer(here, reader);
        return;
      case OpClass::kBroadcast:
        if (here.coverage == Coverage::kRows) {
          broadcast_consumer(here, reader);
          return;
        }
        break;
      default:
        if (is_elementwise(reader.op)) {
          if (dims == reader.shape.dims) offer_as(reader.id, here);
          return;
        }
        break;
    }
    const auto map = operand_map(computation_, reader.id, static_cast<int>(position));
    if (!map || !map->symbols.empty()) return;
    if (const auto inverse = invert(*map, dims)) offer(reader.id, compose(here.map, *inverse));
  }

  /// A reduction of a value that lies in the domain one to one fits if its result depends on the row alone
  /// and there are as many results as rows: each row then is exactly one result's elements.
  void reduce_consumer(const Placement& here, const Node& reader) {
    if (here.coverage != Coverage::kFull) return;
    if (!reduces_domain(computation_, reader.id, mapping_)) return;
    std::vector<bool> reduced(here.map.results.size(), false);
    for (std::int64_t d : reader.attrs.dimensions) reduced.at(static_cast<std::size_t>(d)) = true;
    Placement result;
    result.coverage = Coverage::kRows;
    result.map.dims = here.map.dims;
    for (std::size_t d = 0; d < reduced.size(); ++d) {
      if (reduced[d]) continue;
      if (here.map.results[d].uses_dim(1)) return;
      result.map.results.push_back(here.map.results[d]);
    }
    offer_as(reader.id, result);
  }

  /// A row value spread over exactly the domain's cols: its new dimensions are the col.
  void broadcast_consumer(const Placement& here, const Node& reader) {
    if (reader.shape.elements_count() != mapping_.rows * mapping_.cols) return;
    std::vector<bool> kept(reader.shape.dims.size(), false);
    std::vector<std::int64_t> spread;
    for (std::int64_t d : reader.attrs.dimensions) kept.at(static_cast<std::size_t>(d)) = true;
    std::int64_t spread_elements = 1;
    for (std::size_t d = 0; d < kept.size(); ++d)
      if (!kept[d]) {
        spread.push_back(reader.shape.dims[d]);
        spread_elements *= reader.shape.dims[d];
      }
    if (spread_elements != mapping_.cols) return;
    const std::vector<IndexExpr> spread_index = delinearize(IndexExpr::dim(1), spread);
    IndexMap map;
    map.dims = here.map.dims;
    map.results.resize(kept.size());
    for (std::size_t i = 0; i < reader.attrs.dimensions.size(); ++i)
      map.results[static_cast<std::size_t>(reader.attrs.dimensions[i])] = here.map.results[i];
    for (std::size_t d = 0, s = 0; d < kept.size(); ++d)
      if (!kept[d]) map.results[d] = spread_index[s++];
    map = simplify(std::move(map));
    offers_.back().push_back({reader.id, {std::move(map), Coverage::kFull}});
  }

  void place_untied(NodeId op) {
    const Node& node = computation_.node(op);
    if (node.shape.is_tuple) return;
    if (reduces_domain(computation_, op, mapping_)) {
      // Its operand, if it lies in the domain already, must lie there as the reduction reads it.
      const auto operand = placed_.find(node.operands[0]);
      if (operand != placed_.end() && operand->second.map != domain_map(computation_, op, mapping_)) return;
      place(op, {reduction_shape(computation_, op).output_map, Coverage::kRows});
    } else if (node.shape.elements_count() == mapping_.rows * mapping_.cols) {
      place(op, {flat_map(node.shape.dims, mapping_.rows, mapping_.cols), Coverage::kFull});
    } else if (node.shape.elements_count() == mapping_.rows) {
      IndexMap rows;
      rows.dims = {mapping_.rows, mapping_.cols};
      rows.results = delinearize(IndexExpr::dim(0), node.shape.dims);
      place(op, {simplify(std::move(rows)), Coverage::kRows});
    }
  }

  const Computation& computation_;
  const ThreadMapping& mapping_;
  std::vector<NodeId> ops_;
  std::unordered_map<NodeId, std::vector<NodeId>> users_;  ///< among ops_
  std::map<NodeId, Placement> placed_;
  std::deque<NodeId> expand_;
  /// By coverage; the last for row values spread over the cols, taken when nothing else is left.
  std::array<std::deque<std::pair<NodeId, Placement>>, 4> offers_;
  std::vector<NodeId> tied_;  ///< sorted: the dominant's ancestors and descendants in the group
};

}  // namespace

std::map<NodeId, Placement> propagate(const Computation& computation, NodeId dominant,
                                      const ThreadMapping& mapping, const std::vector<NodeId>& ops) {
  return Propagation(computation, mapping, ops).run(dominant);
}

}  // namespace stitchwork
