#include "analysis/schedule/context.h"

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/schedule/launch.h"
#include "analysis/schedule/tiles.h"
#include "core/base/error.h"
#include "core/index/buffer.h"

namespace stitchwork {

BuildContext::BuildContext(const Graph& g, const KernelPlan& p)
    : graph(g), computation(g.entry_computation()), plan(p), inside_(p.ops.begin(), p.ops.end()) {
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const Group& group = plan.groups[i];
    placements.push_back(propagate(computation, group.dominant, group.mapping, group.ops));
    add_material(group.dominant, static_cast<int>(i), *placements[i]);
    for (NodeId op : group.sub_dominants) add_material(op, static_cast<int>(i), *placements[i]);
    for (const Tile& tile : plan.tiles) {
      if (tile.group != group.dominant) continue;
      const Shape& shape = node(tile.op).shape;
      const std::int64_t elements =
          is_staged(group.mapping)
              ? staged_elements(staged_part(shape, group.mapping), group.mapping)
              : tile_bytes(group.mapping, byte_size(shape.dtype)) / byte_size(shape.dtype);
      Buffer buffer{MemorySpace::kShared, tile.op, shape, elements, tile.offset, false};
      buffer.tile = true;
      buffer.stages = tile.stages;
      buffer.stage_elements = tile.bytes / tile.stages / byte_size(shape.dtype);
      if (is_staged(group.mapping) && staged_part(shape, group.mapping) == StagedPart::kElements)
        buffer.alignment = staged_alignment(group.mapping);
      tiles_[{tile.op, static_cast<int>(i), tile.level}] = add_buffer(std::move(buffer));
    }
  }
}

int BuildContext::tile(NodeId op, int group, int phase) const {
  const auto found = tiles_.find({op, group, phase});
  return found == tiles_.end() ? -1 : found->second;
}

IndexExpr BuildContext::tile_offset(NodeId op, int group, bool moves) const {
  const Mapping& mapping = plan.groups[static_cast<std::size_t>(group)].mapping;
  if (is_staged(mapping)) {
    const StagedPart part = staged_part(node(op).shape, mapping);
    if (moves || part == StagedPart::kRows) return IndexExpr::dim(0);
    if (part == StagedPart::kCols) return IndexExpr::dim(1);
    return IndexExpr::dim(0) * extents(mapping).cols + IndexExpr::dim(1);
  }
  return IndexExpr::dim(0) * tile_stride(mapping, byte_size(node(op).shape.dtype)) + IndexExpr::dim(1);
}

int BuildContext::add_buffer(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return static_cast<int>(buffers.size()) - 1;
}

void BuildContext::add_material(NodeId op, int group_index, const Placements& places) {
  const Group& group = plan.groups[static_cast<std::size_t>(group_index)];
  const Node& n = node(op);
  const auto placed = places.find(op);
  SW_CHECK(placed != places.end(), "{} has no place in the domain of {}", n.name, node(group.dominant).name);
  SW_CHECK(placed->second.coverage != Coverage::kPartial,
           "{} is materialised by a group that covers it in part", n.name);
  SW_CHECK(!materials.contains(op), "{} is materialised by two groups", n.name);
  Material material;
  material.op = op;
  material.group = group_index;
  const auto level = plan.levels.find(op);
  material.level = level == plan.levels.end() ? 0 : level->second;
  material.placement = placed->second;

  const auto slot_of = [op](const std::vector<MemorySlot>& slots) {
    return std::find_if(slots.begin(), slots.end(), [op](const MemorySlot& slot) { return slot.op == op; });
  };
  const Mapping& mapping = group.mapping;
  const auto [domain_rows, domain_cols] = extents(mapping);
  const bool in_shared = plan.schemes.contains(op) && scheme_in_phase(plan, op) == Scheme::kRegional;
  if (const auto slot = slot_of(plan.shared); in_shared && slot != plan.shared.end()) {
    const bool rows = material.placement.coverage == Coverage::kRows;
    const std::int64_t elements = task_rows(mapping) * (rows ? 1 : domain_cols);
    SW_CHECK(slot->bytes >= elements * byte_size(n.shape.dtype),
             "the shared slot of {} has {} bytes, {} needed", n.name, slot->bytes,
             elements * byte_size(n.shape.dtype));
    material.shared = add_buffer({MemorySpace::kShared, op, n.shape, elements, slot->offset, false});
  } else {
    SW_CHECK(!in_shared, "{} is regional and has no shared memory", n.name);
  }
  const bool across = is_across(group, op);
  const bool split = !across && is_reduction(n) && leaves_partials(computation, group, op);
  SW_CHECK(across == (material.placement.coverage == Coverage::kCols),
           "{} lies in the domain of {} otherwise than its group says", n.name, node(group.dominant).name);
  material.output = std::find(plan.outputs.begin(), plan.outputs.end(), op) != plan.outputs.end();
  const auto scratch = slot_of(plan.scratch);
  if (split || across) {
    SW_CHECK(scratch != plan.scratch.end(), "the partials of {} have no scratch", n.name);
    const std::int64_t partials = across ? group.deal.takers * domain_cols : domain_rows * segments(mapping);
    material.partials =
        add_buffer({MemorySpace::kScratch, op, n.shape, partials, scratch->offset, true, across});
  }
  if (across) material.across = places.at(n.operands[0]).map;
  if (material.output)
    material.global = add_buffer(
        {MemorySpace::kGlobalOutput, op, buffer_shape(n), buffer_shape(n).elements_count(), 0, false});
  else if (scratch != plan.scratch.end() && material.partials < 0)
    material.global =
        add_buffer({MemorySpace::kScratch, op, n.shape, n.shape.elements_count(), scratch->offset, false});
  materials.emplace(op, std::move(material));
}

Reach BuildContext::reach(NodeId op, int phase) const {
  if (!inside(op)) {
    // Another name of a value made here is made here too.
    const NodeId owner = buffer_of(computation, op);
    if (owner != op && inside(owner)) return Reach::kCompute;
    return Reach::kInput;
  }
  const auto found = materials.find(op);
  if (found == materials.end()) return Reach::kCompute;
  const Material& m = found->second;
  if (m.level == phase && m.shared >= 0) return Reach::kShared;
  if (m.level < phase && m.partials >= 0) return Reach::kPartials;
  if (m.level < phase && m.global >= 0) return Reach::kGlobal;
  return Reach::kCompute;
}

IndexExpr BuildContext::offset_in(int buffer, NodeId op, const IndexMap& map) const {
  const Node &of = node(op), &owner = node(buffer_of(computation, op));
  const MemorySpace space = buffers[static_cast<std::size_t>(buffer)].space;
  if (of.attrs.updated != nullptr && space == MemorySpace::kGlobalOutput)
    return simplify(buffer_offset(of, map.results), map);
  const IndexExpr dense = linearize(map.results, of.shape.dims);
  if (owner.attrs.placed == nullptr || space == MemorySpace::kScratch) return simplify(dense, map);
  if (owner.id == op) return simplify(buffer_offset(of, map.results), map);
  return simplify(buffer_offset(owner, delinearize(simplify(dense, map), owner.shape.dims)), map);
}

int BuildContext::input_buffer(NodeId op) {
  const NodeId owner = buffer_of(computation, op);
  const auto [it, inserted] = inputs_.try_emplace(owner, -1);
  if (inserted) {
    const Node& of = node(owner);
    const Shape& shape = of.attrs.placed == nullptr ? of.shape : of.attrs.placed->matrix;
    SW_CHECK(!shape.is_tuple, "{} is a tuple: it has no buffer", node(owner).name);
    it->second = add_buffer({MemorySpace::kGlobalInput, owner, shape, shape.elements_count(), 0, false});
  }
  return it->second;
}

}  // namespace stitchwork
