// Step 3 of AStitch section 4.3, finalization: proactive block-locality adaptation of element-wise groups,
// stitching schemes by the passive check, and the phases (levels) that grid barriers separate.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/astitch/reads.h"

namespace stitchwork::astitch {

/// Element-wise groups take over, one by one, the mapping of a group they exchange values with where that
/// makes the values block-local; with several such groups the one that saves most bytes wins. Where the other
/// group's mapping propagates to all of its ops and `merge` holds, the group dissolves into the other.
std::vector<OpGroup> adapt_groups(const Body& body, const Candidates& candidates, std::vector<OpGroup> groups,
                                  bool merge, Recorder& recorder);

struct Finalization {
  std::map<NodeId, Scheme> schemes;  ///< of every op some group evaluates
  std::map<NodeId, int> levels;      ///< likewise
  std::vector<GroupReads> reads;     ///< by group
  std::vector<std::size_t> order;    ///< of the groups: Regional values are produced before they are read
  int grid_barriers = 0;
};

/// Regional values must not tie groups in a circle: groups of one task loop run one after the other.
/// `global`: values that must not be Regional whatever the check says.
Finalization finalize(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
                      const std::set<NodeId>& global, Recorder& recorder);

std::string to_text(const Nodes& nodes, const Finalization& finalization);

}  // namespace stitchwork::astitch
