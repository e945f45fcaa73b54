// What follows a product or convolution, taken out of a kernel: the library call makes it
// (analysis/plan/epilogue.h), as XLA's GemmRewriter (FuseVectorBiasAdd, FuseMatrixBiasAdd) and
// CudnnFusedConvRewriter (FuseBiasOrSideInput, FuseRelu) do.
#pragma once

#include <vector>

#include "analysis/forms/best_kernel.h"
#include "analysis/plan/constraints.h"

namespace stitchwork::automatic {

/// A kernel without what calls compute in its place.
struct Absorption {
  int kernel = -1;
  Candidate after;  ///< without outputs: nothing is left of it
  std::vector<std::vector<NodeId>> calls;
};

/// By kernel: with all its products' calls, then with single ones. A call adds what lies in memory before it,
/// or what the kernel makes if that needs none of the call's. No op that `constraints` name is taken. What it
/// saves is for a judge to say.
std::vector<Absorption> absorptions(const astitch::Nodes& nodes, const std::vector<Candidate>& kernels,
                                    const Constraints& constraints);

}  // namespace stitchwork::automatic
