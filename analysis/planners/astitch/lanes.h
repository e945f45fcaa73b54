// Lanes (docs/planners/astitch.md): which blocks run which groups of a phase.
#pragma once

#include <vector>

#include "analysis/planners/astitch/finalize.h"
#include "occupancy_model/device.h"

namespace stitchwork::astitch {

/// Groups tied by Regional values, or by values that stay in registers across phases, run on the same blocks.
/// Sets of groups that are not tied get disjoint ranges of blocks where they meet in a phase. If a phase
/// needs more blocks than a wave has, its sets take so many tasks a block that all fit and the busiest block
/// ends soonest; if one after the other is no slower, they all start at block 0 as they are. The result are
/// the groups with `lane`, `first_block` and tasks a block filled in.
std::vector<OpGroup> assign_lanes(const Body& body, std::vector<OpGroup> groups,
                                  const Finalization& finalization, const Device& device,
                                  const MappingLimits& limits, Recorder& recorder);

}  // namespace stitchwork::astitch
