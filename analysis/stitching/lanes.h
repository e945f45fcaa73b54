// Lanes (docs/planners/astitch.md): which blocks run which groups of a phase.
#pragma once

#include <functional>
#include <vector>

#include "analysis/stitching/finalize.h"

namespace stitchwork::astitch {

/// Time of one task of a group, by index, where every block of a wave runs one (analysis/judge/cost.h).
using WaveUs = std::function<double(std::size_t)>;

/// Groups tied by Regional values, or by values that stay in registers across phases, run on the same blocks.
/// Sets of groups that are not tied get disjoint ranges of blocks where they meet in a phase. If a phase
/// needs more blocks than a wave has, its sets take so many tasks a block that all fit and the busiest block
/// ends soonest; if one after the other is no slower, they all start at block 0 as they are. The result are
/// the groups with `lane`, `first_block` and tasks a block filled in.
std::vector<OpGroup> assign_lanes(const Body& body, std::vector<OpGroup> groups,
                                  const Finalization& finalization, const MappingLimits& limits,
                                  const WaveUs& wave_us, Recorder& recorder);

}  // namespace stitchwork::astitch
