// Step 3 of AStitch section 4.3, finalization: proactive block-locality adaptation of element-wise groups,
// stitching schemes by the passive check, and the phases (levels) that grid barriers separate.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/stitching/reads.h"

namespace stitchwork::astitch {

/// Element-wise groups take over, one by one, the mapping of a group they exchange values with where that
/// makes the values block-local; with several such groups the one that saves most bytes wins. Where the other
/// group's mapping propagates to all of its ops and `merge` holds, the group dissolves into the other. None
/// gives up too many of its blocks, or of the `sms` that they keep busy.
std::vector<OpGroup> adapt_groups(const Body& body, const Candidates& candidates, std::vector<OpGroup> groups,
                                  bool merge, int sms, Recorder& recorder);

/// Values this small are not worth running groups on the same blocks for.
/// A choice, not measured: 4 KB stay in an SM's L1.
constexpr std::int64_t kTyingElements = 1024;

struct Finalization {
  std::map<NodeId, Scheme> schemes;    ///< of every op some group evaluates
  std::map<NodeId, int> levels;        ///< likewise
  std::map<NodeId, Scheme> in_phase;   ///< as KernelPlan has it
  std::vector<GroupReads> reads;       ///< by group
  std::vector<std::set<NodeId>> near;  ///< by group: values of other groups it reads in their own phase
  std::vector<std::size_t> order;      ///< of the groups: behind those whose values they read in their phase
  std::map<NodeId, int> last_read;     ///< of stored values: the last level with a reader, folds included
  int grid_barriers = 0;

  /// How `value`, which some group evaluates, is had in its own phase.
  Scheme scheme_in_phase(NodeId value) const;
  /// Whether readers of its own phase take `value` from shared memory.
  bool in_shared(NodeId value) const { return scheme_in_phase(value) == Scheme::kRegional; }
};

/// Schemes go by the reader: a value is Regional, or stays in registers, for those who read it in its own
/// phase and block, also where later phases read it from global memory; only these wait at a grid barrier.
/// `global`: values that all must read from global memory whatever the check says.
Finalization finalize(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
                      const std::set<NodeId>& global, Recorder& recorder);

std::string to_text(const Nodes& nodes, const Finalization& finalization);

}  // namespace stitchwork::astitch
