// When the values of a kernel's shared memory are needed: the data-flow analysis behind its reuse (AStitch
// section 4.4, FusionStitching algorithm 4).
#pragma once

#include <vector>

#include "analysis/stitching/finalize.h"

namespace stitchwork::astitch {

/// The steps of one task loop between which some bytes are needed. Steps are separated by block barriers and
/// are run in order, so that step `first` dominates all later ones: bytes whose last reader is in an earlier
/// step are free.
struct Lifetime {
  int level = 0, lane = 0;
  std::size_t loop = 0;  ///< groups tied by Regional values run in one loop: the first of them, by index
  int first = 0, last = 0;
  NodeId last_reader = kNoNode;  ///< of a value

  /// Whether both are needed at once in some block. Loops of one lane run one after the other, those of
  /// different lanes on different blocks, and nothing in shared memory lives on in the next phase.
  bool meets(const Lifetime& other) const;
};

struct SharedLifetimes {
  std::map<NodeId, Lifetime> values;  ///< read from shared memory in their phase
  std::vector<Lifetime> workspace;    ///< the steps that reduce through shared memory, a lifetime each
};

/// `block`: threads of a block.
SharedLifetimes shared_lifetimes(const Body& body, const std::vector<OpGroup>& groups,
                                 const Finalization& finalization, int block);

}  // namespace stitchwork::astitch
