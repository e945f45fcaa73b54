// What a stitch op does with the rows, or elements, of its ops: what the sketch of its kernel is made from
// (analysis/judge/sketch.h).
#pragma once

#include <vector>

#include "analysis/judge/sketch.h"
#include "analysis/stitching/nodes.h"
#include "analysis/stitching/scope.h"

namespace stitchwork::astitch {

GroupDomain domain_of(const Nodes& nodes, NodeId dominant);

/// What decides how long the stitch op takes: its largest reduction, or where it has none its largest op;
/// kNoNode where all are tuples.
NodeId largest_op(const Nodes& nodes, const StitchOp& op);

/// Counted over the members tied to the domain's op that are of its size: each reduction of its rows asks for
/// a pass, and results of that size for one more.
RowWork row_work(const Nodes& nodes, const StitchOp& op, NodeId dominant, const GroupDomain& domain);

/// Instructions an element of `dominant`, which reduces nothing, with all of the `members` that it is
/// computed from where it is: what lies between it and their inputs and reductions, each op once, by its
/// elements.
double chain_instructions(const Nodes& nodes, const std::vector<NodeId>& members, NodeId dominant);

/// The same with all `members` of the dominant's size that values tie to it: they may be in its group, whose
/// threads then compute their elements, too.
double group_instructions(const Nodes& nodes, const std::vector<NodeId>& members, NodeId dominant);

}  // namespace stitchwork::astitch
