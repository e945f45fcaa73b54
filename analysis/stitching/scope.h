// Stitching scope identification (AStitch section 4.1), vertical part: which ops become one kernel.
//
// Two clusters joined by an edge u -> v become one unless another path leads from u to v (through a library
// call, say): stitching them would make a cycle. Paths are searched on the contracted graph from both ends,
// within the bounds of levels that are kept up to date (Bender, Fineman, Gilbert and Tarjan, "A new approach
// to incremental cycle detection and related problems", 2015), so no reachability table is ever built.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/plan/constraints.h"
#include "analysis/plan/plan.h"
#include "analysis/plan/recorder.h"
#include "analysis/stitching/nodes.h"

namespace stitchwork::astitch {

/// A kernel in the making: the paper's *stitch op*.
struct StitchOp {
  std::vector<NodeId> members;  ///< what it must compute, ascending
  std::vector<NodeId> outputs;  ///< members read outside it, ascending
};

struct Scope {
  std::vector<StitchOp> stitch_ops;  ///< by first member
};

/// `max_ops`: members a stitch op may have, those equal in code (equal_ops.h) counted once, merges that
/// overrides want excepted. Throws Error for a merge
/// that cannot be.
Scope find_scope(const Nodes& nodes, int max_ops, Recorder& recorder, const Constraints& constraints = {});

/// Fills in the outputs of a set of members (ascending).
StitchOp stitch_op(const Nodes& nodes, std::vector<NodeId> members);

/// What a kernel of a plan makes that no other does, ascending: index maps, which several kernels repeat,
/// only where this one stores them.
std::vector<NodeId> members_of(const Nodes& nodes, const KernelPlan& kernel);

/// What members of a stitch op outside `part` read of it, as (producer, reader). Both ascending.
std::vector<std::pair<NodeId, NodeId>> edges_across(const Nodes& nodes, const std::vector<NodeId>& members,
                                                    const std::vector<NodeId>& part);

/// The weakly connected parts of a set of members, each a stitch op of its own.
std::vector<StitchOp> connected_parts(const Nodes& nodes, const std::vector<NodeId>& members);

std::string to_text(const Nodes& nodes, const Scope& scope);

}  // namespace stitchwork::astitch
