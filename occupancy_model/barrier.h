// What a barrier of a whole grid takes.
#pragma once

#include <cstdint>

#include "occupancy_model/device.h"

namespace stitchwork {

/// One grid barrier of so many blocks.
double grid_barrier_us(const Device& device, std::int64_t blocks);

}  // namespace stitchwork
