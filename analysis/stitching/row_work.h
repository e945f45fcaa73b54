// What a stitch op does with the rows, or elements, of its ops: what the sketch of its kernel is made from
// (analysis/judge/sketch.h).
#pragma once

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

}  // namespace stitchwork::astitch
