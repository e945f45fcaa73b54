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

/// A step on one of several streams.
struct StreamStep {
  StreamKernel kernel;
  int stream = 0;
  std::vector<int> waits = {};  ///< steps before it, of other streams, that have to end first
  double dispatched_us = 0;     ///< when the host has launched it, from the start of all streams
};

/// Spans of steps, in order of dispatch. A step begins a launch gap behind the step before it on its stream
/// and those that it waits for, once it is dispatched; the first ones begin at once. What an event costs
/// beyond a gap is not modelled.
std::vector<StreamSpan> run_schedule(const Device& device, std::span<const StreamStep> steps);

/// The streams begin together; kernels of a stream follow each other, a launch gap between them.
/// Returns the spans of each stream's kernels in order.
std::vector<std::vector<StreamSpan>> share_device(const Device& device,
                                                  std::span<const std::vector<StreamKernel>> streams);

}  // namespace stitchwork
