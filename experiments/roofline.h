// The instruction roofline of kernels (Ding and Williams, An Instruction Roofline Model for GPUs, PMBS 2019):
// most kernels of memory-intensive ops compute few floats, but all of them issue instructions and move bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/results.h"
#include "figures/data/figure.h"
#include "occupancy_model/device.h"
#include "occupancy_model/timing.h"

namespace stitchwork {

/// A kernel as the roofline shows it: warp instructions in the time of the SMs' schedulers, bytes in that of
/// DRAM, and what it took.
struct RooflineKernel {
  double issue_us = 0, dram_us = 0;  ///< UnitTimes of kIssueUnit and kDramUnit
  double time_us = 0;
};
RooflineKernel roofline_kernel(const KernelTime& time);
/// Empty where the store does not have its parts.
std::optional<RooflineKernel> roofline_kernel(const KernelResult& kernel);

/// What a reader has to know of the figure.
inline constexpr std::string_view kRooflineCaption =
    "Each mark is a kernel: how many warp instructions it issues for each 32 bytes that DRAM moves, and how "
    "many "
    "a second, its launch included. The line is what the device could do at most: DRAM on the left, "
    "instructions on the right.";

/// The kernels of one plan.
struct RooflineSeries {
  std::string name;
  int style = -1;  ///< FigureSeries::style
  std::string method;
  std::vector<RooflineKernel> kernels;
};

/// Warp instructions a second over those for each 32-byte sector of DRAM, both logarithmic, under the peaks
/// of the device. Kernels that move no byte are not on it; empty where there are no others.
std::optional<Figure> roofline_figure(const Device& device, const std::vector<RooflineSeries>& series);

}  // namespace stitchwork
