// The machine's GPUs: what the driver says of one, and the description that it has here.
#pragma once

#include <cstdint>
#include <string>

#include "occupancy_model/device.h"
#include "runtime/cuda/driver.h"

namespace stitchwork::cuda {

/// What the driver says of a GPU.
struct Gpu {
  std::string name;
  int cc_major = 0, cc_minor = 0, sms = 0;
  std::int64_t l2_bytes = 0, memory_bytes = 0;
  int driver_version = 0;                               ///< of CUDA: 13000
  std::string uuid;                                     ///< "GPU-..." as nvidia-smi has it; "" where unknown
  int clock_kilohertz = 0, memory_clock_kilohertz = 0;  ///< the highest, as the driver gives them
};
/// Number `index` of the machine's GPUs. Throws Error.
Gpu gpu(const Driver& driver, int index);

/// The description of a GPU: of the same compute capability and number of SMs, the most similar name first.
/// Throws Error where there is none.
const Device& described(const Gpu& gpu);

}  // namespace stitchwork::cuda
