#include "analysis/planners/fusionstitching/ilp/layout.h"

#include <algorithm>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/planners/fusionstitching/locality.h"
#include "analysis/planners/fusionstitching/schedule_rules.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

std::set<std::int64_t> row_blocks(const Dims& dims) {
  std::set<std::int64_t> result{1};
  for (const Schedule& schedule : candidates(dims))
    if (schedule.type == ScheduleType::kRow) result.insert(blocks_of(schedule, dims));
  return result;
}

/// What the readers of an op need of it.
struct Need {
  enum class Kind : std::uint8_t { kNothing, kChunk, kMore };
  Kind kind = Kind::kNothing;
  Schedule schedule;  ///< kChunk

  void add(const std::optional<Schedule>& needed, const Dims& dims) {
    if (!needed) {
      kind = Kind::kMore;
    } else if (kind == Kind::kNothing) {
      kind = Kind::kChunk;
      schedule = *needed;
    } else if (kind == Kind::kChunk && chunking(*needed, dims) != chunking(schedule, dims)) {
      kind = Kind::kMore;
    }
  }
};

class Propagation {
 public:
  Propagation(const Computation& computation, const Fusion& fusion, const std::vector<NodeId>& must_share,
              std::int64_t blocks)
      : computation_(computation), fusion_(fusion), must_share_(must_share), blocks_(blocks) {}

  ChunkLayout run() {
    for (auto op = fusion_.ops.rbegin(); op != fusion_.ops.rend(); ++op)
      if (!visit(*op)) {
        ChunkLayout none;
        none.refused = *op;
        return none;
      }
    return std::move(result_);
  }

 private:
  const Dims& dims(NodeId op) const { return computation_.node(op).shape.dims; }

  /// Elements of a chunk if it is one range.
  std::int64_t range(NodeId op, const Schedule& schedule) const {
    const auto chunks = chunking(schedule, dims(op));
    return chunks && chunks->one_range() ? chunks->elements() : 0;
  }

  /// False: it would have to be read across blocks.
  bool visit(NodeId op) {
    Need need = needs_[op];
    const bool root = contains_sorted(fusion_.roots, op), must = contains_sorted(must_share_, op);
    if (root) {
      const auto own = row_schedule(dims(op), blocks_);
      if (!own) return false;
      const bool read = need.kind != Need::Kind::kNothing;
      need.add(own, dims(op));
      result_.chunks[op] = range(op, *own);
      if (need.kind == Need::Kind::kMore && read) {
        if (must) return false;
        // Readers compute it for themselves; its own loop is one more of them.
        result_.recomputed.insert(op);
      }
    } else if (need.kind == Need::Kind::kChunk) {
      const std::int64_t elements = range(op, need.schedule);
      if (elements > 0) result_.chunks[op] = elements;
      if (must && elements == 0) return false;
    } else if (must && need.kind == Need::Kind::kMore) {
      return false;
    }
    pass_on(op, need);
    return true;
  }

  void pass_on(NodeId op, const Need& need) {
    if (need.kind == Need::Kind::kNothing) return;
    const Node& node = computation_.node(op);
    for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) {
      const NodeId operand = node.operands[static_cast<std::size_t>(i)];
      if (!contains_sorted(fusion_.ops, operand)) continue;
      std::optional<Schedule> needed;
      if (blocks_ == 1) {
        needed = Schedule{};
      } else if (need.kind == Need::Kind::kChunk) {
        needed = pass(computation_, node, i, need.schedule);
        if (!needed) needed = covering_schedule(computation_, node, i, need.schedule);
      }
      needs_[operand].add(needed, dims(operand));
    }
  }

  const Computation& computation_;
  const Fusion& fusion_;
  const std::vector<NodeId>& must_share_;
  const std::int64_t blocks_;
  std::map<NodeId, Need> needs_;
  ChunkLayout result_;
};

}  // namespace

std::vector<std::int64_t> block_numbers(const Computation& computation, const Fusion& fusion,
                                        const std::vector<NodeId>& must_share) {
  std::vector<NodeId> all = fusion.roots;
  all.insert(all.end(), must_share.begin(), must_share.end());
  sort_unique(all);
  std::set<std::int64_t> common;
  std::set<Dims> seen;
  for (const NodeId op : all) {
    if (!seen.insert(computation.node(op).shape.dims).second) continue;
    const std::set<std::int64_t> of_op = row_blocks(computation.node(op).shape.dims);
    if (seen.size() == 1) {
      common = of_op;
      continue;
    }
    std::erase_if(common, [&](std::int64_t blocks) { return !of_op.contains(blocks); });
  }
  return {common.rbegin(), common.rend()};
}

ChunkLayout chunk_layout(const Computation& computation, const Fusion& fusion,
                         const std::vector<NodeId>& must_share, std::int64_t blocks) {
  return Propagation(computation, fusion, must_share, blocks).run();
}

}  // namespace stitchwork::fusionstitching
