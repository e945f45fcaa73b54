#include "analysis/stitching/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/propagation.h"
#include "core/index/index_hash.h"

namespace stitchwork::astitch {
namespace {

/// Visits of one group, and of each of its ops on average, beyond which it is known that something must be
/// stored; the walk no longer tells apart under which maps values are read.
/// A choice, not measured: they bound planning time.
constexpr std::size_t kMostVisits = 4000, kMostVisitsAnOp = 8;

class Walk {
 public:
  Walk(const Body& body, const Candidates& candidates, GroupReads& result)
      : body_(body), nodes_(*body.nodes), candidates_(candidates), result_(result) {}

  void from(const OpGroup& group, NodeId reader) {
    reader_ = reader;
    most_visits_ = std::max(kMostVisits, kMostVisitsAnOp * group.ops.size());
    const Placement& placement = group.placements->at(reader);
    const Node& node = nodes_.node(reader);
    if (is_across(group, reader)) {
      visit(node.operands[0], group.placements->at(node.operands[0]).map);
      visit(node.operands[1], scalar(placement.map));
    } else if (nodes_[reader].reduction) {
      for (int i = 0; i < reduced_operands(node); ++i)
        visit(node.operands[static_cast<std::size_t>(i)],
              reduced_operand_map(*nodes_.computation, reader, i, placement.map));
      if (const NodeId from = initial_value(node); from != kNoNode) visit(from, scalar(placement.map));
    } else {
      operands(reader, placement.map);
    }
    while (!stack_.empty() && visits_ < most_visits_) {
      auto [op, map] = std::move(stack_.back());
      stack_.pop_back();
      operands(op, map);
    }
    give_up();
  }

 private:
  static IndexMap scalar(IndexMap map) {
    map.results.clear();
    return map;
  }

  /// What the open ops read, they may read anywhere.
  void give_up() {
    while (!stack_.empty()) {
      const NodeId op = stack_.back().first;
      stack_.pop_back();
      for (const NodeId operand : nodes_.node(op).operands) visit(operand, std::nullopt);
    }
  }

  void operands(NodeId op, const std::optional<IndexMap>& map) {
    const Node& node = nodes_.node(op);
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const NodeId operand = node.operands[i];
      if (!body_.contains(operand) || nodes_[operand].immediate) continue;
      const std::optional<IndexMap>& edge = nodes_[op].edges[i].map;
      if (!map || !edge) {
        visit(operand, std::nullopt);
      } else {
        visit(operand, edge->is_identity() ? *map : compose(*map, *edge));
      }
    }
  }

  void visit(NodeId op, std::optional<IndexMap> map) {
    if (!body_.contains(op) || nodes_[op].immediate) return;
    std::vector<Seen>& seen = seen_[op];
    // It will be stored for its many maps: what more of them read need not be told apart.
    if (seen.size() > kMostMaps && !candidates_.stored(op) && !nodes_[op].transparent) map.reset();
    const std::uint64_t hash = map ? hash_of(*map) : 0;
    if (std::any_of(seen.begin(), seen.end(),
                    [&](const Seen& other) { return other.hash == hash && other.map == map; }))
      return;
    seen.push_back({hash, map});
    ++visits_;
    if (candidates_.stored(op)) {
      result_.reads.push_back({op, reader_, std::move(map)});
    } else {
      ++result_.maps[op];
      stack_.emplace_back(op, std::move(map));
    }
  }

  struct Seen {
    std::uint64_t hash = 0;
    std::optional<IndexMap> map;
  };

  const Body& body_;
  const Nodes& nodes_;
  const Candidates& candidates_;
  GroupReads& result_;
  NodeId reader_ = kNoNode;
  std::vector<std::pair<NodeId, std::optional<IndexMap>>> stack_;
  std::unordered_map<NodeId, std::vector<Seen>> seen_;
  std::size_t visits_ = 0, most_visits_ = 0;
};

/// What groups of a computation read, by all that it depends on: rounds of a form, and forms of a kernel, ask
/// again for most groups.
class KnownReads {
 public:
  using Key = std::vector<std::int64_t>;

  static Key key_of(const Body& body, const Candidates& candidates, const OpGroup& group,
                    const std::vector<NodeId>& readers) {
    Key key{static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(group.placements.get())),
            std::ssize(readers)};
    for (const NodeId id : readers) key.insert(key.end(), {id, is_across(group, id)});
    for (const NodeId id : group.ops) {
      key.insert(key.end(), {id, candidates.stored(id)});
      for (const NodeId operand : body.nodes->node(id).operands)
        key.push_back(!body.contains(operand) ? 0 : candidates.stored(operand) ? 1 : 2);
    }
    return key;
  }

  std::optional<GroupReads> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(key);
    return found == kept_.end() ? std::nullopt : std::optional(found->second.second);
  }

  void keep(Key key, const OpGroup& group, const GroupReads& of) {
    const std::size_t size = 1 + of.reads.size() + of.maps.size();
    const std::lock_guard lock(mutex_);
    // A choice, not measured: some ten MB. Rounds ask again for what they asked for lately.
    constexpr std::size_t kMost = 50'000;
    if (size_ += size; size_ > kMost) {
      kept_.clear();
      size_ = size;
    }
    kept_.emplace(std::move(key), std::pair(group.placements, of));
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const { return boost::hash_range(key.begin(), key.end()); }
  };
  std::mutex mutex_;
  /// With the placements that a key names, so that no others take their address.
  std::unordered_map<Key, std::pair<std::shared_ptr<const Placements>, GroupReads>, Hash> kept_;
  std::size_t size_ = 0;
};

}  // namespace

GroupReads group_reads(const Body& body, const Candidates& candidates, const OpGroup& group) {
  return group_reads(body, candidates, group, group.materialised);
}

GroupReads group_reads(const Body& body, const Candidates& candidates, const OpGroup& group,
                       const std::vector<NodeId>& readers) {
  auto& known = body.nodes->computation->derived.get<KnownReads>();
  KnownReads::Key key = KnownReads::key_of(body, candidates, group, readers);
  if (auto found = known.find(key)) return *found;
  GroupReads result;
  Walk walk(body, candidates, result);
  for (const NodeId id : readers) walk.from(group, id);
  known.keep(std::move(key), group, result);
  return result;
}

std::int64_t elements_per_task(const OpGroup& group, NodeId value) {
  const std::int64_t rows = task_rows(group.mapping);
  return group.placements->at(value).coverage == Coverage::kRows ? rows : rows * extents(group.mapping).cols;
}

namespace {

/// Whether the elements a task produces are consecutive, in the order of (row, col).
bool consecutive(const Nodes& nodes, const OpGroup& producer, NodeId value) {
  const Placement& placement = producer.placements->at(value);
  const IndexExpr flat = placement.coverage == Coverage::kRows
                             ? IndexExpr::dim(0)
                             : IndexExpr::dim(0) * extents(producer.mapping).cols + IndexExpr::dim(1);
  return simplify(linearize(placement.map.results, nodes.node(value).shape.dims), placement.map) ==
         simplify(flat, placement.map);
}

}  // namespace

Verdict block_local(const Nodes& nodes, const OpGroup& producer, const OpGroup& reader, const Read& read) {
  const auto refuse = [](std::string why) { return Verdict::no("astitch.block-locality", std::move(why)); };
  const Deal &from = producer.deal, &to = reader.deal;
  if (segments(producer.mapping) > 1 || segments(reader.mapping) > 1)
    return refuse("rows are split over blocks");
  if (is_across(producer, read.value)) return refuse("every block leaves a partial of it");
  if (from.cluster != to.cluster)
    return refuse(
        fmt::format("produced by clusters of {} blocks, read by clusters of {}", from.cluster, to.cluster));
  if (from.cluster > 1 && producer.placements->at(read.value).coverage != Coverage::kRows)
    return refuse("each block of a cluster has a part of the row");
  if (from.tasks != to.tasks || from.takers != to.takers) {
    return refuse(fmt::format("produced in {} tasks of {} blocks, read in {} tasks of {} blocks", from.tasks,
                              from.blocks(), to.tasks, to.blocks()));
  }
  if (&producer == &reader && read.map && *read.map == producer.placements->at(read.value).map &&
      producer.placements->at(read.value).coverage != Coverage::kPartial &&
      consecutive(nodes, producer, read.value)) {
    const std::int64_t produced = elements_per_task(producer, read.value);
    return Verdict::yes("astitch.block-locality",
                        fmt::format("a task reads the {} elements it produces", produced));
  }
  if (!read.map) return refuse("which elements are read is not known");
  const Shape& shape = nodes.node(read.value).shape;
  if (!consecutive(nodes, producer, read.value)) {
    return refuse("a task does not produce consecutive elements");
  }
  // A guarded read (pad) may name elements that do not exist.
  const Interval whole = range_of(linearize(read.map->results, shape.dims), *read.map);
  if (!Interval{0, nodes[read.value].elements - 1}.contains(whole)) {
    return refuse(fmt::format("reads are guarded: elements {} to {} of {}", whole.lo, whole.hi,
                              nodes[read.value].elements));
  }
  // (task, row within the task, col) -> the element read, relative to the first one the task produces.
  const std::int64_t produced = elements_per_task(producer, read.value);
  IndexMap task;
  const auto [rows, cols] = extents(reader.mapping);
  const std::int64_t of_task = task_rows(reader.mapping);
  task.dims = {to.tasks, std::min(of_task, rows), cols};  // one task may have room to spare
  task.results = {IndexExpr::dim(0) * of_task + IndexExpr::dim(1), IndexExpr::dim(2)};
  const IndexMap needed = compose(task, *read.map);
  const IndexExpr relative =
      simplify(linearize(needed.results, shape.dims) - IndexExpr::dim(0) * produced, needed);
  const Interval range = range_of(relative, needed);
  if (Interval{0, produced - 1}.contains(range)) {
    return Verdict::yes(
        "astitch.block-locality",
        fmt::format("a task produces {} elements, and reads {} of them", produced, range.size()));
  }
  return refuse(fmt::format("a task produces {} elements, and reads {} to {} relative to them", produced,
                            range.lo, range.hi));
}

int group_of(const std::vector<OpGroup>& groups, NodeId id) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (std::binary_search(groups[g].materialised.begin(), groups[g].materialised.end(), id)) {
      return static_cast<int>(g);
    }
  }
  return -1;
}

}  // namespace stitchwork::astitch
