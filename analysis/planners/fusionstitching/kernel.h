// From scheduled ops and slots of shared memory to a KernelPlan: FusionStitching 2018, section 5.2. Every op
// that is stitched has a loop of its own over the block's chunk (block composition); everything else is
// inlined into those.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/planners/fusionstitching/sharing.h"
#include "analysis/schedule/evaluations.h"
#include "occupancy_model/device.h"

namespace stitchwork::fusionstitching {

/// One loop of a kernel: a group. Sub-dominants share its mapping (F19's warp composition).
struct Loop {
  NodeId dominant = kNoNode;
  std::vector<NodeId> sub_dominants;  ///< ascending
  Dealt dealt;
  int lane = 0;
};

/// A kernel in the making. What `slots` has is Regional; every root and every op with a slot is materialised
/// by one of the loops.
struct Stitched {
  Fusion fusion;
  std::vector<Loop> loops;
  Slots slots;
  std::vector<NodeId> shrunk;  ///< ascending (KernelPlan::shrunk)
  int block = 1;               ///< threads
};

/// Ops, groups, schemes, levels, shared memory and launch; the reductions' workspace lies behind the values.
/// Roots that the kernel reads elsewhere, too, and that have no slot, are Local: readers compute them.
KernelPlan stitched_kernel(const Computation& computation, const Stitched& stitched);
/// With what its groups evaluate, which the schemes follow from.
struct EvaluatedKernel {
  KernelPlan kernel;
  KernelEvaluations found;
};
EvaluatedKernel evaluated_kernel(const Computation& computation, const Stitched& stitched);
/// The same, or the first op found that a loop would compute under more than kMostMaps index maps
/// (analysis/schedule/evaluations.h).
std::variant<EvaluatedKernel, NodeId> evaluated_within_maps(const Computation& computation,
                                                            const Stitched& stitched);

/// Whether the schedule of the kernel's steps tells values apart that lie in the same shared memory.
bool is_sound(const Graph& graph, const KernelPlan& kernel);

/// mapping=tuned: the kernel with vectors where its loops take them, if the estimate has it faster so and it
/// is sound. `found`: what the kernel's groups evaluate, with vectors or without.
std::optional<KernelPlan> with_vectors(const Graph& graph, const Device& device, const KernelPlan& kernel,
                                       const KernelEvaluations& found);

/// Rows too short to share a warp, a thread each: F19 section 5.2, "a reduction dim that is trivially small".
/// Shorter than a warp, because lanes without a column would idle.
inline constexpr std::int64_t kSerialColumns = 32;

/// Whether the op is a reduction, or a product that is computed as one.
bool is_reduced(const Node& node);

/// Whether threads beside each other share a row of a reduction or product: F19 section 5.2. Rows of a
/// product are read from shared memory or the caches, in whatever order.
bool shares_rows(const Computation& computation, const Node& node);

/// How the loop of an op deals with a chunk of so many elements, 1 at least, of its output that are one
/// range: `threads` a block, `warps` of them a row of a reduction whose rows are long and lie along the minor
/// dimension.
Dealt chunk_mapping(const Computation& computation, const Node& node, std::int64_t chunk, int threads,
                    int warps);

/// The numbers of warps a row that chunk_mapping tells apart: powers of two up to the block's, and 1 alone of
/// ops whose rows are none.
std::vector<int> row_warps(const Computation& computation, const Node& node, int threads);

}  // namespace stitchwork::fusionstitching
