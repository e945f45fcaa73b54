// What each resource of an SM alone would admit: the calculator's table.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "occupancy_model/device.h"

namespace stitchwork {

struct OccupancyLimit {
  std::string_view resource;   ///< "threads", "registers", "shared memory", "blocks"
  std::string_view unit;       ///< of the two amounts
  std::int64_t per_block = 0;  ///< allocated to a block, with its granularity
  std::int64_t per_sm = 0;     ///< what an SM has
  std::int64_t blocks = 0;     ///< that fit; kUnlimited where the resource is not used
  static constexpr std::int64_t kUnlimited = INT32_MAX;
};

/// In the order of the table; occupancy() gives the smallest of them.
std::array<OccupancyLimit, 4> occupancy_limits(const Device& device, int threads_per_block,
                                               int registers_per_thread, std::int64_t shared_bytes_per_block);

}  // namespace stitchwork
