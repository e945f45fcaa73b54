// Kernels of compilers that fuse by inlining (XLA, TVM): one loop, everything else computed inside it, values
// in registers only.
#pragma once

#include <variant>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// A kernel of one group under `dealt`: `ops` inlined into `roots` (both ascending), which it materialises;
/// which of them it stores (`outputs`, which estimates count) is the caller's to say. Aliases of its own
/// values that its ops read are added. Roots are Independent, or Local where the kernel also reads them; an
/// op needed at several indices, or by several threads at one, is Recomputed.
KernelPlan inlined_kernel(const Computation& computation, std::vector<NodeId> ops,
                          const std::vector<NodeId>& roots, NodeId dominant, const Dealt& dealt);

/// The same, or the first op found that it would compute under more than kMostMaps index maps
/// (analysis/schedule/evaluations.h).
std::variant<KernelPlan, NodeId> inlined_within_maps(const Computation& computation, std::vector<NodeId> ops,
                                                     const std::vector<NodeId>& roots, NodeId dominant,
                                                     const Dealt& dealt);

/// Marks the inlined ops that several of the kernels compute as Recomputed.
void mark_recomputed(std::vector<KernelPlan>& kernels);

}  // namespace stitchwork
