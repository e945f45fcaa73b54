// A device held to less than it has: the axes of design-space sweeps.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "occupancy_model/device.h"

namespace stitchwork {

/// By name: "threads_per_block", "shared_bytes_per_block", "registers_per_thread", "registers_per_sm",
/// "shared_bytes_per_sm". Ordered, so that equal limits are equal text.
using DeviceLimits = std::map<std::string, std::int64_t>;

/// The device with at most so much of each. Throws Error naming an unknown limit, or one that no kernel keeps
/// to (fewer than 32 threads or 16 registers).
Device limited(const Device& device, const DeviceLimits& limits);

/// "threads_per_block 256, registers_per_thread 64"; "" without limits.
std::string to_text(const DeviceLimits& limits);

}  // namespace stitchwork
