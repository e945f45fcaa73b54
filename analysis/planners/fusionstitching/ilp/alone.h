// What an op costs alone, and the kernel it is then: the implicit pattern of score 0 (F19 section 4.3,
// "K(Op_j)").
#pragma once

#include "analysis/plan/plan.h"
#include "analysis/planners/fusionstitching/ilp/ops.h"

namespace stitchwork::fusionstitching {

/// `pattern` (ascending) and the index maps through which its ops read, ascending: what its kernel evaluates.
/// Immediates are no part of it.
std::vector<NodeId> evaluated_ops(const astitch::Nodes& nodes, const std::vector<NodeId>& pattern);

/// The kernel that `unfused` makes of an op, but for index maps, which are evaluated in it.
KernelPlan kernel_alone(const astitch::Nodes& nodes, NodeId op);

/// Predicted microseconds of the kernel, copy or library call that the op is alone.
double alone_us(const Ops& ops, NodeId op);

}  // namespace stitchwork::fusionstitching
