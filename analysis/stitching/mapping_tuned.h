// mapping=tuned: thread mappings chosen by the time they are modelled to take (docs/planners/astitch.md).
#pragma once

#include "analysis/judge/sketch.h"
#include "analysis/stitching/mapping.h"
#include "occupancy_model/errors.h"

namespace stitchwork::astitch {

/// What a kernel with this mapping would do.
Sketch sketch_of(const GroupDomain& domain, const Dealt& dealt, const MappingLimits& limits);

/// The fastest mapping of a domain within the limits; `split`: blocks a row by override, 0 leaves it to the
/// model.
Dealt map_tuned(const GroupDomain& domain, const MappingLimits& limits, int split = 0);

}  // namespace stitchwork::astitch
