// Step 1b of AStitch section 4.3: dominant merging and op grouping.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analysis/schedule/propagation.h"
#include "analysis/stitching/dominants.h"
#include "analysis/stitching/mapping.h"

namespace stitchwork::astitch {

/// A group in the making: plan.h's Group, with the placement of its ops.
struct OpGroup {
  NodeId dominant = kNoNode;
  std::vector<NodeId> materialised;  ///< dominant and sub-dominants, ascending
  std::vector<NodeId> ops;           ///< ascending; what the materialised ops inline, and themselves
  Mapping mapping;
  Deal deal;
  std::shared_ptr<const Placements> placements;
  bool elementwise = true;  ///< no reduction in it
  int lane = 0;             ///< as plan.h has it
};

/// Whether the group reduces `id` across its rows, into a partial a block and column.
bool is_across(const OpGroup& group, NodeId id);

/// A group of the given materialised ops under the given mapping, if it propagates to all of them.
Verdict make_group(const Body& body, const Candidates& candidates, NodeId dominant,
                   std::vector<NodeId> materialised, const Dealt& dealt, OpGroup& group);

/// Candidates connected through Local ops only, ascending by first candidate.
std::vector<std::vector<NodeId>> connected_candidates(const Body& body, const Candidates& candidates);

/// Groups, ascending by first materialised op. `merge` off: every candidate dominates a group of its own.
std::vector<OpGroup> form_groups(const Body& body, const Candidates& candidates, const MappingLimits& limits,
                                 bool merge, Recorder& recorder);

std::string to_text(const Nodes& nodes, const std::vector<OpGroup>& groups);

}  // namespace stitchwork::astitch
