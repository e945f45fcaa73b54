#include "analysis/schedule/propagation.h"

#include <algorithm>
#include <array>
#include <boost/container_hash/hash.hpp>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "analysis/facts/facts.h"
#include "analysis/facts/operand_index.h"
#include "analysis/schedule/launch.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

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

IndexMap domain_map(const Computation& computation, NodeId dominant, const Mapping& mapping) {
  const Node& node = computation.node(dominant);
  if (reduces_domain(computation, dominant, mapping)) return reduction_shape(computation, dominant).input_map;
  const auto [rows, cols] = extents(mapping);
  return flat_map(node.shape.dims, rows, cols);
}

Coverage coverage(const IndexMap& map, const std::vector<std::int64_t>& extents) {
  if (!map.symbols.empty() || !map.runtime.empty() || !map.constraints.empty()) return Coverage::kPartial;
  std::int64_t elements = 1;
  for (std::int64_t extent : extents) elements *= extent;
  const std::int64_t rows = map.dims.at(0), cols = map.dims.at(1);
  if (elements == rows * cols) {
    const IndexExpr linear = linearize(map.results, extents),
                    flat = IndexExpr::dim(0) * cols + IndexExpr::dim(1);
    if (linear == flat || simplify(linear, map) == simplify(flat, map)) return Coverage::kFull;
    if (invert(map, extents)) return Coverage::kFull;
  }
  if (elements == rows && std::none_of(map.results.begin(), map.results.end(),
                                       [](const IndexExpr& e) { return e.uses_dim(1); })) {
    const IndexExpr linear = linearize(map.results, extents), row = IndexExpr::dim(0);
    if (linear == row || simplify(linear, map) == simplify(row, map)) return Coverage::kRows;
    if (invert(row_only(map), extents)) return Coverage::kRows;
  }
  return Coverage::kPartial;
}

IndexMap reduced_operand_map(const Computation& computation, NodeId reduce, int operand,
                             const IndexMap& result) {
  if (const Node& node = computation.node(reduce); is_product(node))
    return reduced_operand_map(computation, node, operand, result);
  IndexMap own_row;
  own_row.dims = result.dims;
  own_row.results = {linearize(result.results, computation.node(reduce).shape.dims), IndexExpr::dim(1)};
  return compose(own_row, reduction_shape(computation, reduce).input_map);
}

namespace {

/// Breadth-first over the edges of the group, best coverage first: a value both sliced and read whole is
/// placed by the edge that reads it whole. Nodes are known by their place among the ops and what they read.
class Propagation {
 public:
  Propagation(const Computation& computation, const Mapping& mapping, const std::vector<NodeId>& ops)
      : computation_(computation), mapping_(mapping), domain_(extents(mapping)) {
    for (NodeId op : ops) {
      nodes_.push_back(op);
      const std::vector<NodeId>& operands = computation.node(op).operands;
      nodes_.insert(nodes_.end(), operands.begin(), operands.end());
    }
    sort_unique(nodes_);
    placed_.resize(nodes_.size());
    offered_.assign(nodes_.size(), kNoOffer);
    inside_.assign(nodes_.size(), false);
    operands_.resize(nodes_.size());
    users_.resize(nodes_.size());
    for (NodeId op : ops) inside_[at(op)] = true;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (!inside_[n]) continue;
      for (NodeId operand : node(n).operands) {
        operands_[n].push_back(at(operand));
        std::vector<std::size_t>& readers = users_[operands_[n].back()];
        if (readers.empty() || readers.back() != n) readers.push_back(n);
      }
    }
  }

  Placements run(NodeId dominant_op) {
    if (!std::binary_search(nodes_.begin(), nodes_.end(), dominant_op)) return {};
    const std::size_t dominant = at(dominant_op);
    const IndexMap domain = domain_map(computation_, dominant_op, mapping_);
    if (reduces_domain(computation_, dominant_op, mapping_)) {
      place(dominant, {reduction_shape(computation_, dominant_op).output_map, Coverage::kRows});
      if (!is_product(node(dominant))) offer(operands_[dominant].at(0), domain);
    } else {
      place(dominant, {domain, Coverage::kFull});
    }
    drain();
    // Roots with no data flow to or from the dominant that share with it only a broadcast vector, or nothing:
    // an op with as many elements as the domain takes the flat domain itself, latest first so that producers
    // follow.
    const std::vector<bool> tied = find_tied(dominant);
    for (std::size_t n = nodes_.size(); n-- > 0;) {
      if (!inside_[n] || placed_[n] || tied[n] || read_by_unplaced(n)) continue;
      place_untied(n);
      drain();
    }
    Placements result;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (placed_[n]) result.emplace_hint(result.end(), nodes_[n], std::move(*placed_[n]));
    return result;
  }

 private:
  /// A placement a node may take: that of another node, or its own.
  struct Offer {
    std::size_t to = 0;
    std::optional<std::size_t> like;
    Placement own;
  };
  // No quantity: one queue for each way an index is offered.
  static constexpr std::size_t kQueues = 4, kNoOffer = kQueues;

  std::size_t at(NodeId id) const {
    return static_cast<std::size_t>(std::lower_bound(nodes_.begin(), nodes_.end(), id) - nodes_.begin());
  }
  const Node& node(std::size_t n) const { return computation_.node(nodes_[n]); }

  bool read_by_unplaced(std::size_t n) const {
    return std::any_of(users_[n].begin(), users_[n].end(), [&](std::size_t r) { return !placed_[r]; });
  }

  /// The dominant's ancestors and descendants in the group.
  std::vector<bool> find_tied(std::size_t dominant) const {
    std::vector<bool> below(nodes_.size(), false), above(nodes_.size(), false);
    below[dominant] = above[dominant] = true;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (std::any_of(operands_[n].begin(), operands_[n].end(), [&](std::size_t o) { return below[o]; }))
        below[n] = true;
    for (std::size_t n = nodes_.size(); n-- > 0;)
      if (above[n])
        for (std::size_t operand : operands_[n]) above[operand] = true;
    for (std::size_t n = 0; n < nodes_.size(); ++n) below[n] = below[n] || above[n];
    return below;
  }

  void place(std::size_t n, Placement placement) {
    if (placed_[n]) return;
    placed_[n] = std::move(placement);
    expand_.push_back(n);
  }

  /// Not placed, and not offered the best there is: the first of equal offers is taken.
  bool open(std::size_t n) const { return !placed_[n] && offered_[n] > 0; }

  void offer(std::size_t queue, Offer offer) {
    if (placed_[offer.to] || offered_[offer.to] <= queue) return;
    offered_[offer.to] = queue;
    offers_[queue].push_back(std::move(offer));
  }
  void offer(std::size_t to, IndexMap map) {
    const Coverage how = coverage(map, node(to).shape.dims);
    offer(static_cast<std::size_t>(how), Offer{to, {}, {std::move(map), how}});
  }
  void offer_as(std::size_t to, std::size_t like) {
    offer(static_cast<std::size_t>(placed_[like]->coverage), Offer{to, like, {}});
  }

  void drain() {
    for (;;) {
      while (!expand_.empty()) {
        const std::size_t n = expand_.front();
        expand_.pop_front();
        if (inside_[n]) to_producers(n);
        to_consumers(n);
      }
      auto best =
          std::find_if(offers_.begin(), offers_.end(), [](const auto& queue) { return !queue.empty(); });
      if (best == offers_.end()) return;
      Offer taken = std::move(best->front());
      best->pop_front();
      place(taken.to, taken.like ? *placed_[*taken.like] : std::move(taken.own));
    }
  }

  void to_producers(std::size_t n) {
    const Placement& here = *placed_[n];
    if (is_reduction(node(n))) {
      reduce_operands(n);
      return;
    }
    for (std::size_t i = 0; i < operands_[n].size(); ++i) {
      const std::size_t operand = operands_[n][i];
      if (!open(operand)) continue;
      if (is_elementwise(node(n).op) && node(operand).shape.dims == node(n).shape.dims) {
        offer_as(operand, n);
      } else if (const auto& map = operand_map(computation_, nodes_[n], static_cast<int>(i))) {
        offer(operand, compose(here.map, *map));
      }
    }
  }

  /// A reduction placed by its result's rows takes its operands along if it reduces exactly the domain's
  /// cols.
  void reduce_operands(std::size_t n) {
    const Placement& here = *placed_[n];
    if (here.coverage != Coverage::kRows && !(here.coverage == Coverage::kFull && domain_.cols == 1)) return;
    for (int i = 0; i < reduced_operands(node(n)); ++i) {
      const std::size_t operand = operands_[n][static_cast<std::size_t>(i)];
      if (!open(operand) || !reduces_domain(computation_, nodes_[n], mapping_)) continue;
      offer(operand, reduced_operand_map(computation_, nodes_[n], i, here.map));
    }
  }

  void to_consumers(std::size_t n) {
    const Coverage here = placed_[n]->coverage;
    if (here == Coverage::kPartial || here == Coverage::kCols) return;
    for (std::size_t reader : users_[n])
      if (open(reader)) to_consumer(n, reader);
  }

  void to_consumer(std::size_t n, std::size_t to) {
    const Placement& here = *placed_[n];
    const Node& reader = node(to);
    const auto position = std::find(operands_[to].begin(), operands_[to].end(), n) - operands_[to].begin();
    const std::vector<std::int64_t>& dims = node(n).shape.dims;
    if (is_product(reader)) {
      product_consumer(here, static_cast<int>(position), to);
      return;
    }
    switch (def(reader.op).cls) {
      case OpClass::kReduce:
        if (position == 0) reduce_consumer(here, to);
        return;
      case OpClass::kBroadcast:
        if (here.coverage == Coverage::kRows) {
          broadcast_consumer(here, to);
          return;
        }
        break;
      default:
        if (is_elementwise(reader.op)) {
          if (dims == reader.shape.dims) offer_as(to, n);
          return;
        }
        break;
    }
    const auto& map = operand_map(computation_, reader.id, static_cast<int>(position));
    if (!map || !map->symbols.empty()) return;
    if (const auto inverse = invert(*map, dims)) offer(to, compose(here.map, *inverse));
  }

  /// A product whose operand lies in the domain as it reads it there, results by rows, fits too (that of a
  /// matrix and a vector).
  void product_consumer(const Placement& here, int position, std::size_t to) {
    const NodeId product = nodes_[to];
    if (here.coverage != Coverage::kFull || !reduces_domain(computation_, product, mapping_)) return;
    IndexMap result = reduction_shape(computation_, product).output_map;
    if (reduced_operand_map(computation_, product, position, result) == here.map)
      offer(static_cast<std::size_t>(Coverage::kRows), Offer{to, {}, {std::move(result), Coverage::kRows}});
  }

  /// A reduction of a value that lies in the domain one to one fits if its result depends on the row alone
  /// and there are as many results as rows: each row then is exactly one result's elements. Likewise the
  /// cols.
  void reduce_consumer(const Placement& here, std::size_t to) {
    if (here.coverage != Coverage::kFull) return;
    const Node& reader = node(to);
    std::vector<bool> reduced(here.map.results.size(), false);
    for (std::int64_t d : reader.attrs.dimensions) reduced.at(static_cast<std::size_t>(d)) = true;
    Placement result;
    result.map.dims = here.map.dims;
    bool uses_row = false, uses_col = false;
    for (std::size_t d = 0; d < reduced.size(); ++d) {
      if (reduced[d]) continue;
      uses_row = uses_row || here.map.results[d].uses_dim(0);
      uses_col = uses_col || here.map.results[d].uses_dim(1);
      result.map.results.push_back(here.map.results[d]);
    }
    const bool across = packs_rows(mapping_) && domain_.rows > 1 && uses_col && !uses_row &&
                        reader.shape.elements_count() == domain_.cols;
    if (!across && (uses_col || !reduces_domain(computation_, reader.id, mapping_))) return;
    result.coverage = across ? Coverage::kCols : Coverage::kRows;
    offer(static_cast<std::size_t>(Coverage::kRows), Offer{to, {}, std::move(result)});
  }

  /// A row value spread over exactly the domain's cols: its new dimensions are the col.
  void broadcast_consumer(const Placement& here, std::size_t to) {
    const Node& reader = node(to);
    if (reader.shape.elements_count() != domain_.elements()) return;
    std::vector<bool> kept(reader.shape.dims.size(), false);
    std::vector<std::int64_t> spread;
    for (std::int64_t d : reader.attrs.dimensions) kept.at(static_cast<std::size_t>(d)) = true;
    std::int64_t spread_elements = 1;
    for (std::size_t d = 0; d < kept.size(); ++d)
      if (!kept[d]) {
        spread.push_back(reader.shape.dims[d]);
        spread_elements *= reader.shape.dims[d];
      }
    if (spread_elements != domain_.cols) return;
    const std::vector<IndexExpr> spread_index = delinearize(IndexExpr::dim(1), spread);
    IndexMap map;
    map.dims = here.map.dims;
    map.results.resize(kept.size());
    for (std::size_t i = 0; i < reader.attrs.dimensions.size(); ++i)
      map.results[static_cast<std::size_t>(reader.attrs.dimensions[i])] = here.map.results[i];
    for (std::size_t d = 0, s = 0; d < kept.size(); ++d)
      if (!kept[d]) map.results[d] = spread_index[s++];
    map = simplify(std::move(map));
    offer(kQueues - 1, Offer{to, {}, {std::move(map), Coverage::kFull}});
  }

  void place_untied(std::size_t n) {
    const Node& op = node(n);
    if (op.shape.is_tuple) return;
    if (reduces_domain(computation_, op.id, mapping_)) {
      // Its operand, if it lies in the domain already, must lie there as the reduction reads it; those of a
      // product are read wherever they lie.
      const std::optional<Placement>& operand = placed_[operands_[n][0]];
      if (operand && !is_product(op) && operand->map != domain_map(computation_, op.id, mapping_)) return;
      place(n, {reduction_shape(computation_, op.id).output_map, Coverage::kRows});
    } else if (op.shape.elements_count() == domain_.elements()) {
      place(n, {flat_map(op.shape.dims, domain_.rows, domain_.cols), Coverage::kFull});
    } else if (op.shape.elements_count() == domain_.rows) {
      IndexMap rows;
      rows.dims = {domain_.rows, domain_.cols};
      rows.results = delinearize(IndexExpr::dim(0), op.shape.dims);
      place(n, {simplify(std::move(rows)), Coverage::kRows});
    }
  }

  const Computation& computation_;
  const Mapping& mapping_;
  Extents domain_;
  std::vector<NodeId> nodes_;                               ///< the ops and what they read, ascending
  std::vector<bool> inside_;                                ///< one of the ops
  std::vector<std::vector<std::size_t>> operands_, users_;  ///< of and among the ops
  std::vector<std::optional<Placement>> placed_;
  std::vector<std::size_t> offered_;  ///< the best queue that holds an offer to the node
  std::deque<std::size_t> expand_;
  /// By coverage; the last for row values spread over the cols, taken when nothing else is left.
  std::array<std::deque<Offer>, kQueues> offers_;
};

}  // namespace

namespace {

/// What a computation's propagations gave, by all they depend on.
class Propagated {
 public:
  struct Key {
    NodeId dominant;
    Extents domain;
    bool reduces, packs;  ///< the mapping's threads can reduce; they pack rows
    std::vector<NodeId> ops;
    bool operator==(const Key&) const = default;
  };

  std::shared_ptr<const Placements> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(key);
    return found == kept_.end() ? nullptr : found->second;
  }

  void keep(Key key, std::shared_ptr<const Placements> placements) {
    const std::lock_guard lock(mutex_);
    // A choice, not measured: some hundred MB. Searches ask again for what they asked for lately.
    constexpr std::size_t kMostPlacements = 500'000;
    if (placements_ += placements->size() + 1; placements_ > kMostPlacements) {
      kept_.clear();
      placements_ = placements->size() + 1;
    }
    kept_.emplace(std::move(key), std::move(placements));
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::size_t sum = boost::hash_range(key.ops.begin(), key.ops.end());
      boost::hash_combine(sum, key.dominant);
      boost::hash_combine(sum, key.domain.rows);
      boost::hash_combine(sum, key.domain.cols);
      return sum;
    }
  };
  std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Placements>, Hash> kept_;
  std::size_t placements_ = 0;
};

}  // namespace

std::shared_ptr<const Placements> propagate(const Computation& computation, NodeId dominant,
                                            const Mapping& mapping, const std::vector<NodeId>& ops) {
  auto& known = computation.derived.get<Propagated>();
  Propagated::Key key{dominant, extents(mapping),
                      !is<mapping::Elements>(mapping) && !is<mapping::Patch>(mapping), packs_rows(mapping),
                      ops};
  if (auto found = known.find(key)) return found;
  auto made = std::make_shared<const Placements>(Propagation(computation, mapping, ops).run(dominant));
  known.keep(std::move(key), made);
  return made;
}

}  // namespace stitchwork
