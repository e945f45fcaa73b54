// Overrides of stitching schemes: what they ask of the passes of one stitch op, and whether it came to be.
#pragma once

#include "analysis/plan/constraints.h"
#include "analysis/stitching/finalize.h"

namespace stitchwork::astitch {

/// The overrides of schemes among a stitch op's members.
struct WantedSchemes {
  Amendments amendments;              ///< promoted: regional, global; inlined: local, recomputed
  std::set<NodeId> global, regional;  ///< values that must be so
  std::map<NodeId, Scheme> schemes;   ///< all of them
};
WantedSchemes wanted_schemes(const StitchOp& op, const Constraints& constraints);

/// Throws Error for the first value that has another scheme than wanted, with what stands against it: the
/// elements that are not block-local, the ops that read it, ...
void require_schemes(const Body& body, const Candidates& candidates, const std::vector<OpGroup>& groups,
                     const Finalization& finalization, const std::map<NodeId, Scheme>& wanted);

/// Throws Error for the first value that is to be Resident and is not, with what `reasons` (of
/// keep_residents) say against it.
void require_residents(const Nodes& nodes, const KernelPlan& kernel, const std::map<NodeId, Scheme>& wanted,
                       const std::map<NodeId, Verdict>& reasons);

/// Throws Error: the values an override keeps in shared memory do not fit it.
[[noreturn]] void refuse_regional(const Nodes& nodes, const std::set<NodeId>& regional, const Verdict& fits);

}  // namespace stitchwork::astitch
