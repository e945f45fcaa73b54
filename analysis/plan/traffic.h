// Which buffers a step of a plan reads and fills: the one rule that upload, lifetimes and verification
// follow.
#pragma once

#include <span>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// Buffers by the ops that own them (`storage_of`), each list ascending. Of an array that is updated in place
/// the rest stays, so that it is read, too.
struct Traffic {
  std::vector<NodeId> reads, writes;
};

/// The buffers that hold `node`'s value or a part of it: `buffer_of` followed through tuples. Unlike
/// `values_read` it names the stations on the way too: an element of a tuple has a buffer of its own, in
/// which a kernel may have found it before a later step reads it again through another tuple.
std::vector<NodeId> buffers_read(const Computation& computation, NodeId node);

/// What a library call, copy or memset of these ops reads of others: all operands of the first, and of what
/// follows it those that are no numbers in the call's code.
std::vector<NodeId> call_operands(const Computation& computation, std::span<const NodeId> call);

/// What a step that is no kernel leaves in memory: of a planner's call of several ops the last.
std::span<const NodeId> results_of(const FusionPlan& plan, const PlanStep& step);

/// Of one step of a plan of `graph`'s entry computation; nothing of a kernel that the plan does not have.
Traffic traffic(const Graph& graph, const FusionPlan& plan, const PlanStep& step);

}  // namespace stitchwork
