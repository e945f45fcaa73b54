// Values that a kernel reads of others, or computes again from what lies in memory anyhow, by the fewest
// bytes: the backward pass of a training step needs what the forward pass had on the way, and AStitch's
// kernels, which a library call lies between, store and read all of it. The cut of least weight that
// separates what is in memory from what is needed, after He and Yu, "Transcending Runtime-Memory Tradeoffs in
// Checkpointing by being Fusion Aware" (MLSys 2023).
#pragma once

#include <vector>

#include "analysis/forms/best_kernel.h"
#include "analysis/plan/constraints.h"

namespace stitchwork::automatic {

/// A value of another kernel that a kernel reads in place of what it computes again.
struct NewRead {
  NodeId value = kNoNode, reader = kNoNode;
};

/// Kernels that change together.
struct Recomputation {
  std::vector<int> kernels;      ///< ascending
  std::vector<Candidate> after;  ///< of each; without outputs: nothing reads it any more
  std::vector<NodeId> again;     ///< values that are computed where they were read, ascending
  std::vector<NewRead> new_reads;
};

/// `kernels` hold every member once. Only element-wise ops and index maps are computed again, no op that
/// `constraints` name, and nothing that is read by more elements than it has: those would each compute it.
/// What that saves is for a judge to say.
std::vector<Recomputation> recomputations(const astitch::Nodes& nodes, const std::vector<Candidate>& kernels,
                                          const Constraints& constraints);

}  // namespace stitchwork::automatic
