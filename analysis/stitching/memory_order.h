// The order in which a reduction's elements lie in memory, where transposes stand between it and its inputs.
#pragma once

#include "analysis/stitching/nodes.h"

namespace stitchwork::astitch {

/// Whether lanes should run along what `reduce` reduces: of most bytes of elements that it is computed from,
/// neighbours there are neighbours in memory. As its operand's shape says (ReductionShape::row_reduce) where
/// nothing is transposed on the way, or something else reads the elements, too.
bool lies_along_cols(const Nodes& nodes, NodeId reduce);

}  // namespace stitchwork::astitch
