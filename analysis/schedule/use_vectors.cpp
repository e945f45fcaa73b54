#include "analysis/schedule/use_vectors.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "analysis/schedule/branches.h"
#include "analysis/schedule/layout.h"

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
           (step.turned ? is<mapping::Elements>(step.mapping)
                        : packs_rows(step.mapping) && (!step.layout.in_tile || step.layout.task_rows == 1));
  // Those across the rows lie side by side, of 16-bit floats as floats.
  return !is_partials(kernel, buffer) || (b.across && byte_size(b.shape.dtype) >= 4);
}

/// A peeled row's vectors reach into its neighbours, as those of shifted columns do, which nobody may be
/// writing. A tile has room for them.
bool may_reach(const Schedule& kernel, const Layout& layout, int buffer) {
  return kernel.buffers.at(static_cast<std::size_t>(buffer)).tile ||
         (!layout.peeled && layout.columns != ColumnVectors::kShifted) ||
         kernel.buffers.at(static_cast<std::size_t>(buffer)).space == MemorySpace::kGlobalInput;
}

/// Vectors of columns that none divides may lie in two cols.
bool stores_vectors(const Layout& layout) {
  return layout.columns != ColumnVectors::kFlat && layout.columns != ColumnVectors::kShifted;
}

/// A load that every element makes, or all of a vector or none, at an index known without other loads: in
/// vectors, or one for all of a vector's elements.
bool may_go_ahead(const Schedule& kernel, const Step& step, const Layout& layout, const Value& value,
                  Movement movement) {
  // One place in memory that all elements under a condition read is near, and would take a register each.
  if (!value.at.map.constraints.empty() && !value.offset.uses_dim(layout.lane_dim)) return false;
  return value.scope < 0 && value.restored < 0 && value.depth > layout.lane_dim &&
         may_reach(kernel, layout, value.buffer) &&
         (movement == Movement::kOneForAll
              ? !is_partials(kernel, value.buffer)
              : movement == Movement::kVector && has_vectors(kernel, step, value.buffer));
}

/// Partials of neighbouring rows, folded a vector at a time: they lie side by side, `split` times.
bool may_fold_ahead(const Computation& computation, const Schedule& kernel, const Step& step,
                    const Value& value, Movement movement) {
  const Layout& layout = step.layout;
  const Buffer& partials = kernel.buffers.at(static_cast<std::size_t>(value.buffer));
  const Shape& shape = computation.node(value.op).shape;
  const bool whole = layout.width > 1 && !step.turned && !layout.partial_vectors && !layout.peeled &&
                     !layout.head && stores_vectors(layout);
  if (!whole || value.scope >= 0 || value.restored >= 0 || value.depth <= layout.lane_dim) return false;
  if (partials.space == MemorySpace::kShared || !value.at.map.constraints.empty() ||
      !value.at.runtime.empty())
    return false;
  const bool starts_once = std::ranges::all_of(value.arguments, [&](int argument) {
    return step.values[static_cast<std::size_t>(argument)].depth == 0;
  });
  return starts_once && (is_floating(shape.dtype) || byte_size(shape.dtype) >= 4) &&
         (movement == Movement::kOneForAll ||
          (movement == Movement::kVector && shape.elements_count() % layout.width == 0));
}

/// Whether a whole vector takes the branches that a value is in. A choice is asked once: a concatenation of
/// many has as many guards as branches.
class BranchesOfVectors {
 public:
  BranchesOfVectors(const Computation& computation, const Step& step)
      : step_(step), branches_(find_branches(computation, step)), known_(step.values.size()) {}

  bool any(int v) const { return branches_.of[static_cast<std::size_t>(v)] >= 0; }

  bool hold(int v) {
    for (int b = branches_.of[static_cast<std::size_t>(v)]; b >= 0;) {
      const Branch& branch = branches_.all[static_cast<std::size_t>(b)];
      const auto choice = static_cast<std::size_t>(branch.choice);
      if (!known_[choice]) known_[choice] = is_one_for_vectors(step_.values[choice], step_.layout);
      if (!*known_[choice]) return false;
      b = branch.parent;
    }
    return true;
  }

 private:
  const Step& step_;
  Branches branches_;
  std::vector<std::optional<bool>> known_;  ///< by value that is a choice
};

/// A slice of an array begins at a vector, whatever its number.
bool begins_at_vector(const Step& step, const Root& root, int width) {
  if (root.slice < 0) return true;
  const IndexMap& starts = step.values[static_cast<std::size_t>(root.slice)].at.map;
  return std::ranges::all_of(starts.results[0].terms,
                             [&](const IndexTerm& term) { return term.coefficient % width == 0; });
}

}  // namespace

void use_vectors(const Computation& computation, Schedule& kernel) {
  for (Phase& phase : kernel.phases)
    for (TaskLoop& loop : phase.loops)
      for (Step& step : loop.steps) {
        if (step.filling == Filling::kAhead) continue;  // its copies are no values
        if (step.rows || (step.layout.width == 1 && step.layout.unroll == 1)) continue;
        if (step.layout.rows * step.layout.cols == 0) continue;
        const Layout& layout = step.layout;
        BranchesOfVectors branches(computation, step);
        for (const int v : step.order) {
          Value& value = step.values[static_cast<std::size_t>(v)];
          if (value.kind != ValueKind::kLoad && value.kind != ValueKind::kFold) continue;
          const Movement movement = layout.movement(value.offset, value.at.map);
          value.same = movement == Movement::kOneForAll;
          value.ahead = value.kind == ValueKind::kFold
                            ? !branches.any(v) && may_fold_ahead(computation, kernel, step, value, movement)
                            : may_go_ahead(kernel, step, layout, value, movement) && branches.hold(v);
        }
        if (step.layout.width == 1) continue;
        IndexMap domain;
        domain.dims = {step.layout.rows, step.layout.cols};
        for (Root& root : step.roots) {
          if (root.store != StoreKind::kElement) continue;
          for (Target& target : root.targets)
            target.vector = has_vectors(kernel, step, target.buffer) && stores_vectors(layout) &&
                            begins_at_vector(step, root, layout.width) &&
                            layout.movement(target.offset, domain) == Movement::kVector;
        }
      }
}

}  // namespace stitchwork
