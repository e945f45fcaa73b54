// Which values to store rather than recompute, and which stored values were not worth it: what one round of
// planning a stitch op learns for the next.
#pragma once

#include "analysis/stitching/stitched.h"
#include "occupancy_model/device.h"

namespace stitchwork::astitch {

/// Inlined ops evaluated by several groups and computed from Global values: storing them instead may keep
/// what they are computed from within its blocks. Worth trying, not always worth taking.
std::set<NodeId> promotions_to_try(const Stitched& stitched);

/// Scalars that keep their readers in one block, group after group, where a grid barrier and groups side by
/// side take less time: each group waits for its loads at least once.
std::set<NodeId> crowding_scalars(const Stitched& stitched, const Device& device);

/// Adds to `amendments`; returns whether anything was added.
///   promoted: inlined ops evaluated by several groups, or under many maps in one, whose recomputation costs
///             more than writing, a grid barrier and reading;
///   dropped:  light cones (kLight) that ended up Global though computing them again costs less than the
///             barrier.
bool amend(const Stitched& stitched, const Device& device, Amendments& amendments, Recorder& recorder);

}  // namespace stitchwork::astitch
