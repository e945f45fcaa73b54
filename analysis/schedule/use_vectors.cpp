#include "analysis/schedule/use_vectors.h"

#include "analysis/schedule/branches.h"
#include "analysis/tiles.h"
#include "analysis/vectors.h"

namespace stitchwork {
namespace {

bool is_partials(const Schedule& kernel, int buffer) {
  return kernel.buffers.at(static_cast<std::size_t>(buffer)).partials;
}

/// Global memory, and the tiles of staged tasks where these move or are of one row: a vector there is one in
/// its tile. So is one of rows beside a tile.
bool has_vectors(const Schedule& kernel, const Step& step, int buffer) {
  const Buffer& b = kernel.buffers.at(static_cast<std::size_t>(buffer));
  if (b.space == MemorySpace::kShared)
    return b.tile &&
           (stages_a_row(step.mapping) || (step.turned && step.mapping.kind == MappingKind::kElementwise) ||
            (!step.turned && step.mapping.kind == MappingKind::kRowPack && !step.mapping.staged));
  // Those across the rows lie side by side, of 16-bit floats as floats.
  return !is_partials(kernel, buffer) || (b.across && byte_size(b.shape.dtype) >= 4);
}

/// A peeled row's vectors reach into its neighbours, as those of shifted columns do, which nobody may be
/// writing. A tile has room for them.
bool may_reach(const Schedule& kernel, const Step& step, int buffer) {
  return kernel.buffers.at(static_cast<std::size_t>(buffer)).tile ||
         (!is_peeled(step.mapping) && column_vectors(step.mapping) != ColumnVectors::kShifted) ||
         kernel.buffers.at(static_cast<std::size_t>(buffer)).space == MemorySpace::kGlobalInput;
}

/// Vectors of columns that none divides may lie in two cols.
bool stores_vectors(const ThreadMapping& mapping) {
  return mapping.kind != MappingKind::kColumn || column_vectors(mapping) == ColumnVectors::kWhole;
}

/// A load that every element makes, or all of a vector or none, at an index known without other loads: in
/// vectors, or one for all of a vector's elements.
bool may_go_ahead(const Schedule& kernel, const Step& step, const Value& value) {
  // One place in memory that all elements under a condition read is near, and would take a register each.
  if (!value.at.map.constraints.empty() && !value.offset.uses_dim(vector_dim(step.mapping))) return false;
  return value.kind == ValueKind::kLoad && value.scope < 0 && value.restored < 0 &&
         value.depth > vector_dim(step.mapping) && value.at.runtime.empty() &&
         holds_for_vectors(value.at.map, step.mapping) && value.at.map.symbols.empty() &&
         may_reach(kernel, step, value.buffer) &&
         (value.same ? !is_partials(kernel, value.buffer)
                     : has_vectors(kernel, step, value.buffer) &&
                           moves_in_vectors(value.offset, value.at.map, step.mapping));
}

/// Whether a whole vector takes the branches that value `v` is in.
bool in_branch_of_vectors(const Step& step, const Branches& branches, int v) {
  for (int b = branches.of[static_cast<std::size_t>(v)]; b >= 0;) {
    const Branch& branch = branches.all[static_cast<std::size_t>(b)];
    if (!is_one_for_vectors(step.values[static_cast<std::size_t>(branch.choice)], step.mapping)) return false;
    b = branch.parent;
  }
  return true;
}

}  // namespace

void use_vectors(const Computation& computation, Schedule& kernel) {
  for (Phase& phase : kernel.phases)
    for (TaskLoop& loop : phase.loops)
      for (Step& step : loop.steps) {
        if (step.filling == Filling::kAhead) continue;  // its copies are no values
        if (step.rows || (step.mapping.vector == 1 && step.mapping.unroll == 1)) continue;
        if (step.mapping.rows * step.mapping.cols == 0) continue;
        const Branches branches = find_branches(computation, step);
        for (const int v : step.order) {
          Value& value = step.values[static_cast<std::size_t>(v)];
          value.same =
              value.kind == ValueKind::kLoad && is_same_in_vectors(value.offset, value.at.map, step.mapping);
          value.ahead = may_go_ahead(kernel, step, value) && in_branch_of_vectors(step, branches, v);
        }
        if (step.mapping.vector == 1) continue;
        IndexMap domain;
        domain.dims = {step.mapping.rows, step.mapping.cols};
        for (Root& root : step.roots) {
          if (root.store != StoreKind::kElement) continue;
          for (Target& target : root.targets)
            target.vector = has_vectors(kernel, step, target.buffer) && stores_vectors(step.mapping) &&
                            moves_in_vectors(target.offset, domain, step.mapping);
        }
      }
}

}  // namespace stitchwork
