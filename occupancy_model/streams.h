// Kernels of several streams that share a device (docs/timing.md, "Streams").
#pragma once

#include <span>
#include <vector>

#include "occupancy_model/timing.h"

namespace stitchwork {

/// A kernel as others that run beside it feel it.
struct StreamKernel {
  KernelTime alone;
  /// Of the blocks that the device can hold of this kernel, the share that it has: 1 for a full wave.
  double resident_share = 1;
};

/// When a kernel begins and ends, from the start of all streams.
struct StreamSpan {
  double begin_us = 0, end_us = 0;
};

/// The streams begin together; kernels of a stream follow each other, a launch gap between them.
/// Returns the spans of each stream's kernels in order.
std::vector<std::vector<StreamSpan>> share_device(const Device& device,
                                                  std::span<const std::vector<StreamKernel>> streams);

}  // namespace stitchwork
