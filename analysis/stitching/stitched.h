// A stitch op between its passes: what each of them reads of the ones before it.
#pragma once

#include <set>
#include <vector>

#include "analysis/stitching/finalize.h"

namespace stitchwork::astitch {

/// After all passes but memory and launch.
struct Stitched {
  Body body;
  Candidates candidates;
  std::vector<OpGroup> groups;
  std::set<NodeId> global;  ///< values kept from the readers of their own block: by override, or they crowd
  Finalization finalization;
  std::vector<Decision> decisions, locality;  ///< of all passes but the last, and of that: finalize
};

}  // namespace stitchwork::astitch
