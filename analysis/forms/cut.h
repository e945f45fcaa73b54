// Where a stitch op is cut that makes too large a kernel, and what becomes of its parts.
#pragma once

#include <vector>

#include "analysis/forms/form.h"
#include "analysis/stitching/stitched.h"

namespace stitchwork::astitch {

/// The members a first kernel computes when one is too large: a prefix of a topological order, so that the
/// rest never feeds it.
std::vector<NodeId> first_part(const Stitched& stitched, const Options& options);

/// Whether a cut of `op` behind `part` would part two ops that an override wants in one kernel.
bool separates(const Constraints& constraints, const StitchOp& op, const std::vector<NodeId>& part);

/// The stitch op in two kernels or more, each the best of its part.
void cut(const Nodes& nodes, const StitchOp& op, const Device& device, const Options& options,
         const std::vector<NodeId>& part, Attempt& attempt);

}  // namespace stitchwork::astitch
