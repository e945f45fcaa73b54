#include "analysis/forms/staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/plan/assemble.h"
#include "analysis/schedule/evaluations.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/tiles.h"
#include "core/base/arithmetic.h"
#include "core/base/sorted.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::astitch {
namespace {

/// What the group moves to and from global memory, an element of the domain each, and the values a row and a
/// col it reads from outside: reads first.
class Staged {
 public:
  Staged(const Computation& computation, const KernelPlan& kernel, const Group& group)
      : computation_(computation), kernel_(kernel), group_(group) {}

  Verdict find(std::vector<Tile>& tiles) const {
    const GroupEvaluations found = evaluations(computation_, kernel_, group_);
    if (!found.unplaced.empty()) return refuse(found.unplaced.front());
    const auto add = [&](NodeId op, int level, bool read) {
      for (const Tile& tile : tiles)
        if (tile.op == op && tile.group == group_.dominant && tile.level == level) return;
      const Shape& shape = computation_.node(op).shape;
      const StagedPart part = staged_part(shape, group_.mapping);
      const int bytes = byte_size(shape.dtype);
      const int tasks = read ? staged_tasks(part, group_.mapping, bytes) : 1;
      tiles.push_back(
          {op, group_.dominant, level, 0, staged_bytes(part, group_.mapping, bytes, tasks), tasks});
    };
    for (const Evaluation& e : found.values) {
      const bool inside = contains_sorted(kernel_.ops, e.op);
      if (!e.load || (inside && reads_shared(kernel_, e.op, e.root))) continue;
      if (partials_of(computation_, kernel_, e.op) > 0) continue;  // readers fold them
      if (computation_.node(buffer_of(computation_, e.op)).attrs.placed != nullptr)
        return refuse(e.op);  // its rows lie apart
      const auto part = staged_part(computation_.node(e.op).shape, e.map, group_.mapping);
      if (depends_on(e.map, 0) && depends_on(e.map, 1) && part != StagedPart::kElements) return refuse(e.op);
      const bool beside = part == StagedPart::kCols   ? stages_cols(group_.mapping, group_.deal)
                          : part == StagedPart::kRows ? !stages_a_row(group_.mapping)
                                                      : false;
      if (part == StagedPart::kElements || (beside && !inside)) add(e.op, kernel_.levels.at(e.root), true);
    }
    for (const NodeId op : materialised(group_)) {
      const Placement& placed = found.placements->at(op);
      const Attributes& attrs = computation_.node(op).attrs;
      if (attrs.updated != nullptr || attrs.placed != nullptr) return refuse(op);  // it begins elsewhere
      const bool stored = contains_sorted(kernel_.outputs, op) || kernel_.schemes.at(op) == Scheme::kGlobal;
      if (!stored || placed.coverage != Coverage::kFull) continue;
      if (scheme_in_phase(kernel_, op) == Scheme::kRegional ||
          staged_part(computation_.node(op).shape, placed.map, group_.mapping) != StagedPart::kElements)
        return refuse(op);
      add(op, kernel_.levels.at(op), false);
    }
    return Verdict::yes();
  }

 private:
  Verdict refuse(NodeId op) const {
    return Verdict::no("astitch.staged",
                       fmt::format("{} lies otherwise than the rows of {}", computation_.node(op).name,
                                   computation_.node(group_.dominant).name));
  }

  const Computation& computation_;
  const KernelPlan& kernel_;
  const Group& group_;
};

/// Tiles of a kernel are filled in one way: the same instructions wait for the copies of all of them.
Verdict same_copies(const Computation& computation, const KernelPlan& kernel) {
  const Group* first = nullptr;
  for (const Group& group : kernel.groups) {
    if (!is_staged(group.mapping)) continue;
    if (first == nullptr) first = &group;
    if (copy_depth(group.mapping) != copy_depth(first->mapping) ||
        copies_in_bulk(group.mapping) != copies_in_bulk(first->mapping))
      return Verdict::no("astitch.staged", fmt::format("the rows of {} are copied otherwise than those of {}",
                                                       computation.node(group.dominant).name,
                                                       computation.node(first->dominant).name));
  }
  return Verdict::yes();
}

}  // namespace

Verdict stage_rows(const Computation& computation, KernelPlan& kernel) {
  if (Verdict same = same_copies(computation, kernel); !same) return same;
  std::vector<Tile> tiles;
  for (const Group& group : kernel.groups)
    if (is_staged(group.mapping))
      if (Verdict found = Staged(computation, kernel, group).find(tiles); !found) return found;
  if (tiles.empty()) return Verdict::yes();
  // Those of a phase beside each other, but for results that take the place of what they are made from.
  const std::int64_t first = round_up(kernel.launch.shared_bytes, kSharedAlignment);
  std::int64_t end = first;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    Tile& tile = tiles[t];
    std::int64_t next = first;
    const Tile* replaced = nullptr;
    for (std::size_t before = 0; before < t; ++before) {
      const Tile& other = tiles[before];
      if (other.level != tile.level) continue;
      next = std::max(next, round_up(other.offset + other.bytes, kSharedAlignment));
      const bool taken =
          std::any_of(tiles.begin(), tiles.begin() + static_cast<std::ptrdiff_t>(t), [&](const Tile& third) {
            return &third != &other && third.level == other.level && third.offset == other.offset;
          });
      if (!taken && takes_over(computation, kernel, tile, other)) replaced = &other;
    }
    tile.offset = replaced != nullptr ? replaced->offset : next;
    if (replaced != nullptr) {
      tile.bytes = replaced->bytes;
      tile.stages = replaced->stages;
    }
    end = std::max(end, tile.offset + tile.bytes);
  }
  kernel.launch.shared_bytes = end;
  kernel.tiles.insert(kernel.tiles.end(), tiles.begin(), tiles.end());
  return Verdict::yes();
}

void drop_unread_tiles(const Computation& computation, KernelPlan& kernel) {
  std::erase_if(kernel.tiles, [&](const Tile& tile) {
    const auto group = std::find_if(kernel.groups.begin(), kernel.groups.end(),
                                    [&](const Group& g) { return g.dominant == tile.group; });
    const std::vector<NodeId> made = materialised(*group);
    if (std::binary_search(made.begin(), made.end(), tile.op) && kernel.levels.at(tile.op) == tile.level)
      return false;
    const GroupEvaluations found = evaluations(computation, kernel, *group);
    return std::none_of(found.values.begin(), found.values.end(), [&](const Evaluation& e) {
      return e.op == tile.op && e.tile && kernel.levels.at(e.root) == tile.level;
    });
  });
}

}  // namespace stitchwork::astitch
