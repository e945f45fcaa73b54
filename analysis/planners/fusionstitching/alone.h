// The kernel that an op is alone: what fuses with nothing.
#pragma once

#include "analysis/plan/plan.h"
#include "analysis/stitching/nodes.h"

namespace stitchwork::fusionstitching {

/// `pattern` (ascending) and the index maps through which its ops read, ascending: what its kernel evaluates.
/// Immediates are no part of it.
std::vector<NodeId> evaluated_ops(const astitch::Nodes& nodes, const std::vector<NodeId>& pattern);

/// The kernel that `unfused` makes of an op, but for index maps, which are evaluated in it.
KernelPlan kernel_alone(const astitch::Nodes& nodes, const Device& device, NodeId op);

/// Whether an op, or what it reads, has no elements: nothing that blocks could have chunks of.
bool is_empty(const astitch::Nodes& nodes, NodeId op);

}  // namespace stitchwork::fusionstitching
