#include "analysis/schedule/tile_steps.h"

#include <algorithm>

#include "analysis/schedule/launch.h"
#include "analysis/schedule/layout.h"
#include "analysis/schedule/values.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {

void TileSteps::add(const std::set<int>& groups, TaskLoop& loop) const {
  for (const bool stores : {false, true})
    for (const int group : groups)
      for (Step& step : of_group(group, stores)) {
        step.stage = stores ? loop.steps.back().stage + (loop.steps.back().turned ? 0 : 1)
                            : loop.steps.front().stage - (loop.steps.front().turned ? 0 : 1);
        loop.steps.insert(stores ? loop.steps.end() : loop.steps.begin(), std::move(step));
      }
}

/// Of a staged group the values a col and a row move each by a step of their own, which comes before that
/// of the elements; what is copied asynchronously by a step a tile, as it waits for no registers.
std::vector<Step> TileSteps::of_group(int group_index, bool stores) const {
  std::vector<Step> steps;
  const Group& group = context_.plan.groups[static_cast<std::size_t>(group_index)];
  const auto add = [&](const Mapping& mapping, std::optional<StagedPart> part) {
    const std::vector<const Tile*> tiles = tiles_of(group, stores, part);
    if (!tiles.empty()) steps.push_back(moving(group_index, stores, mapping, part, tiles));
  };
  if (!is_staged(group.mapping)) {
    add(tile_mapping(group.mapping), std::nullopt);
    return steps;
  }
  if (copy_depth(group.mapping) > 0 && !stores) {
    for (const Tile& tile : context_.plan.tiles)
      if (tile.group == group.dominant && tile.level == phase_ && !is_stored_through(tile))
        steps.push_back(filling(group_index, tile));
    return steps;
  }
  add(range_mapping(group, stores), StagedPart::kElements);
  if (stores) {
    for (Step& step : steps)
      step.in_bulk = std::all_of(step.roots.begin(), step.roots.end(), [&](const Root& root) {
        return root.targets.front().offset == IndexExpr::dim(0) &&
               stored_in_bulk(group.mapping, byte_size(context_.node(root.op).shape.dtype));
      });
    return steps;
  }
  add(staging_mapping(group.mapping, kVectorBytes, StagedPart::kRows), StagedPart::kRows);
  add(staging_cols(group.mapping), StagedPart::kCols);
  return steps;
}

/// Of a group whose tiles are filled ahead.
Step TileSteps::filling(int group_index, const Tile& tile) const {
  const Group& group = context_.plan.groups[static_cast<std::size_t>(group_index)];
  const Shape& shape = context_.node(tile.op).shape;
  const StagedPart part = staged_part(shape, group.mapping);
  if (part == StagedPart::kCols) {
    // A choice, not measured: eight loads of a thread are in flight.
    constexpr std::int64_t kMostUnrolled = 8;  // a round trip to memory takes as long as much of a task
    mapping::Elements mapping = staging_cols(group.mapping);
    mapping.vectors.unroll =
        static_cast<int>(std::clamp<std::int64_t>(Layout(mapping, launch_.block).vectors, 1, kMostUnrolled));
    Step step = moving(group_index, false, mapping, part, {&tile});
    step.filling = Filling::kOnce;
    return step;
  }
  mapping::Elements mapping = staging_mapping(group.mapping, byte_size(shape.dtype), part);
  const int copied = copied_bytes(part, group.mapping, byte_size(shape.dtype));
  if (copied > 0) mapping.vectors.width = copied / byte_size(shape.dtype);
  Step step = moving(group_index, false, mapping, part, {&tile});
  const Value& value = step.values[static_cast<std::size_t>(step.roots.front().value)];
  const bool as_in_memory =
      value.kind == ValueKind::kLoad && value.at.runtime.empty() && value.at.map.constraints.empty() &&
      value.at.map.symbols.empty() &&
      (copies_in_bulk(group.mapping) ? value.offset == IndexExpr::dim(0)
                                     : step.layout.movement(value.offset, value.at.map) == Movement::kVector);
  if (copied > 0 && as_in_memory) step.filling = Filling::kAhead;
  return step;
}

std::vector<const Tile*> TileSteps::tiles_of(const Group& group, bool stores,
                                             std::optional<StagedPart> part) const {
  std::vector<const Tile*> tiles;
  for (const Tile& tile : context_.plan.tiles)
    if (tile.group == group.dominant && tile.level == phase_ && stores == is_stored_through(tile) &&
        (!part || staged_part(context_.node(tile.op).shape, group.mapping) == *part))
      tiles.push_back(&tile);
  return tiles;
}

Step TileSteps::moving(int group_index, bool stores, const Mapping& mapping, std::optional<StagedPart> part,
                       const std::vector<const Tile*>& tiles) const {
  Step step;
  step.group = group_index;
  step.turned = true;
  step.set(mapping, launch_.block);
  ValueBuilder builder(context_, step, phase_);
  for (const Tile* tile : tiles) {
    const NodeId op = tile->op;
    const IndexMap map = part ? in_a_range(op, step.layout.rows)
                              : context_.placements[static_cast<std::size_t>(group_index)]->at(op).map;
    Root root;
    root.op = op;
    root.value = stores ? builder.load_tile(op, map) : builder.value(op, map);
    // Every task has the same cols.
    if (part == StagedPart::kCols) step.values[static_cast<std::size_t>(root.value)].local = true;
    root.targets = {
        stores ? Target{context_.materials.at(op).global,
                        context_.offset_in(context_.materials.at(op).global, op, map)}
               : Target{context_.tile(op, group_index, phase_), context_.tile_offset(op, group_index, true)}};
    step.roots.push_back(std::move(root));
  }
  return step;
}

/// How a staged task moves: all of the group's tiles together, as many vectors of each in flight as a share
/// of the registers holds.
mapping::Elements TileSteps::range_mapping(const Group& group, bool stores) const {
  // A choice, not measured: four vectors of 16 bytes take 16 registers, and half of a thread's are left.
  constexpr int kMostUnrolled = 4, kShare = 2;
  int widest = 1, bytes = 0;
  for (const Tile* tile : tiles_of(group, stores, StagedPart::kElements)) {
    const int size = byte_size(context_.node(tile->op).shape.dtype);
    widest = std::max(widest, size);
    bytes += size;
  }
  mapping::Elements mapping = staging_mapping(group.mapping, widest);
  const int registers = launch_.register_bound > 0 ? launch_.register_bound : kUnboundRegisters;
  if (bytes > 0)
    mapping.vectors.unroll =
        std::clamp(registers * kRegisterBytes / kShare / (bytes * mapping.vectors.width), 1, kMostUnrolled);
  return mapping;
}

/// (element of the range) -> index.
IndexMap TileSteps::in_a_range(NodeId op, std::int64_t elements) const {
  IndexMap map;
  map.dims = {std::min(elements, context_.node(op).shape.elements_count()), 1};
  map.results = delinearize(IndexExpr::dim(0), context_.node(op).shape.dims);
  return simplify(std::move(map));
}

/// By the group that computes the value; else the tile is read.
bool TileSteps::is_stored_through(const Tile& tile) const {
  const auto m = context_.materials.find(tile.op);
  return m != context_.materials.end() && m->second.level == tile.level &&
         context_.plan.groups[static_cast<std::size_t>(m->second.group)].dominant == tile.group;
}

}  // namespace stitchwork
