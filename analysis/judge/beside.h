// Two kernels as one, before there is a plan of it.
#pragma once

#include <cstdint>

#include "occupancy_model/timing.h"

namespace stitchwork {

/// What kernels do, and what it takes by the estimate.
struct CountedWork {
  KernelWork work;
  double us = 0;
  std::int64_t blocks_per_wave = 1;  ///< of a launch that has grid barriers, at most so many
};

/// The work of both side by side where a wave has room; `shared_bytes`, which both read, come from DRAM once.
/// `waves`: without grid barriers each has its own blocks, in as many waves as they take.
CountedWork beside(const Device& device, const CountedWork& a, const CountedWork& b, double shared_bytes,
                   bool waves);

}  // namespace stitchwork
