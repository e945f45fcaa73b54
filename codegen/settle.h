// Assume-relax-apply, checked after compilation (AStitch section 4.5): a kernel whose registers spill, or
// whose grid would not be resident, is planned again.
#pragma once

#include <functional>

#include "codegen/executable.h"

namespace stitchwork {

/// Plans the model again with further edits; empty where the plan was given and is not to be changed.
using Replan = std::function<FusionPlan(const std::vector<Edit>& more)>;

/// Compiles `plan` and looks at what ptxas says of every kernel (nothing, where there is no ptxas). For a
/// kernel that spills registers or whose grid with barriers does not fit the device: first half the blocks
/// an SM, which leaves each thread more registers, down to one; then smaller blocks; then a split behind the
/// Global value of least bytes. Of all plans made on the way the one that is estimated to take least is kept,
/// its spilled bytes included, kernel by kernel, and of those it cannot tell apart the one that spills least;
/// one that cannot be launched only if all cannot. The edits are recorded in the plan, what was found and
/// done in `Executable::checks`, as are kernels that nothing helps and first plans that no other beat
/// ("compile.dearer").
Executable compile_settled(const Graph& graph, const Device& device, const FusionPlan& plan,
                           const Replan& replan, const CompileOptions& options = {});

}  // namespace stitchwork
