// Memory usage (AStitch section 4.4): where Regional and Global values live, and which Regional values give
// way when a block's shared memory is too small.
#pragma once

#include <optional>
#include <vector>

#include "analysis/stitching/finalize.h"

namespace stitchwork::astitch {

struct MemoryPlan {
  /// Values read from shared memory in their phase, by op, then the reduction workspace (op == kNoNode).
  std::vector<MemorySlot> shared;
  std::vector<MemorySlot> scratch;  ///< Global values without an output buffer, and partials
  std::int64_t shared_bytes = 0, scratch_bytes = 0;
};

/// What reductions need beside the values, under blocks of `block` threads.
struct Workspace {
  std::int64_t bytes = 0;
  int block = 0;
};

/// `reuse`: values of one task loop whose lifetimes (lifetimes.h) do not meet may share bytes, and so may
/// values of different phases and lanes, and the workspace. Off: nothing does.
MemoryPlan plan_memory(const Body& body, const std::vector<OpGroup>& groups, const Finalization& finalization,
                       const Workspace& workspace, bool reuse, Recorder& recorder);

/// The value in shared memory whose demotion to Global, for all its readers, adds least global traffic per
/// byte of shared memory freed.
/// `kept`: values that an override wants Regional.
std::optional<NodeId> cheapest_demotion(const Body& body, const std::vector<OpGroup>& groups,
                                        const Finalization& finalization, const std::set<NodeId>& kept = {});

}  // namespace stitchwork::astitch
