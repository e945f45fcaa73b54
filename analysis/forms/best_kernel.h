// The one entry for planners that have decided which ops are to be one kernel, and want the best kernel of
// them: mapping, schemes, memory and launch by AStitch's passes, of every form that its search knows.
#pragma once

#include <span>
#include <vector>

#include "analysis/stitching/options.h"
#include "analysis/stitching/scope.h"

namespace stitchwork {

/// Ops that one kernel shall compute, and those of them that are read outside it, both ascending
/// (astitch::stitch_op fills in the outputs). They need not be connected; nothing outside may lie on a path
/// between two of them.
using Candidate = astitch::StitchOp;

struct BestKernel {
  std::vector<KernelPlan> kernels;  ///< one; several where the limits of a kernel (Options) make it too large
  std::vector<Decision> decisions;  ///< where Options::record_decisions asks for them
};

/// `nodes` and `options.constraints` are of one graph. Throws Error for an override that no form honours.
BestKernel best_kernel(const astitch::Nodes& nodes, const Candidate& candidate, const Device& device,
                       const astitch::Options& options);

/// Of each candidate. Those that are alike (analysis/forms/alike.h) are searched for once, over the host's
/// cores.
std::vector<BestKernel> best_kernels(const astitch::Nodes& nodes, std::span<const Candidate> candidates,
                                     const Device& device, const astitch::Options& options);

}  // namespace stitchwork
