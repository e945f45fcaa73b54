// From kernels to a plan: the part every planner shares.
#pragma once

#include <string>
#include <vector>

#include "analysis/plan.h"

namespace stitchwork {

/// Orders kernels, library calls, copies and memsets topologically (ties by node id), names and numbers the
/// kernels, fills `outputs`, counts, model, device and planner. `kernels` need ops, groups, schemes, levels
/// and launch. Every kMemory node not only used as an immediate must be in some kernel.
FusionPlan assemble(const Graph& graph, const Device& device, std::string planner,
                    std::vector<KernelPlan> kernels);

/// The values a kernel reads from device memory: operands of its ops that it does not compute itself and that
/// are not immediates, ascending; aliases resolved to the op that owns the buffer.
std::vector<NodeId> kernel_inputs(const Graph& graph, const KernelPlan& kernel);

/// The op whose buffer holds `node`'s values outside kernels (follows kAlias ops whose operand is
/// materialised).
NodeId buffer_of(const Computation& computation, NodeId node);

}  // namespace stitchwork
