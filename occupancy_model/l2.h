// How much the L2 holds.
#pragma once

#include <cstdint>

#include "occupancy_model/device.h"

namespace stitchwork {

/// Bytes of lines that differ which the L2 holds. Nvidia A100 Tensor Core GPU Architecture, "A100 L2 Cache":
/// two partitions, each of which keeps what the SMs connected to it access. A line has its home in one; SMs
/// of the other side keep it in theirs as well. Of what one SM alone uses half is thus held twice, 1.5 copies
/// on average. PyTorch's layer norm of rows whose resident ones are 0.5 and 0.7 of 40 MB reads them 1.5
/// and 1.9 times (measured times at the bandwidth of DRAM), which is what two thirds give.
inline std::int64_t l2_distinct_bytes(const Device& device) {
  const bool two_partitions = device.cc_major == 8 && device.cc_minor == 0;
  return two_partitions ? device.l2_bytes * 2 / 3 : device.l2_bytes;
}

}  // namespace stitchwork
