// What limits a workload: the part of the timing model that takes most of each kernel (docs/timing.md).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "analysis/cost.h"
#include "experiments/results.h"

namespace stitchwork {

/// A part of a kernel's time, the metric that holds the time of the kernels it limits, and what that means.
struct Limit {
  std::string_view name, metric, meaning;
};
inline constexpr std::array<Limit, 6> kLimits = {{
    {"DRAM", "limit_dram_us", "bytes from and to memory at the sustained bandwidth"},
    {"L2", "limit_l2_us", "sectors through the L2"},
    {"issue", "limit_issue_us", "instructions: arithmetic, addresses, loads and stores"},
    {"latency", "limit_latency_us",
     "too few loads in flight, or too few warps, to hide the memory's latency"},
    {"barriers", "limit_barrier_us", "grid barriers inside kernels"},
    {"launch", "limit_launch_us", "kernels so small that an empty one takes most of their time"},
}};

/// By index of kLimits: time of the kernels that each limits, in us.
using LimitTimes = std::array<double, kLimits.size()>;

/// `costs`: of the plan's kernels.
LimitTimes limit_times(const Device& device, const std::vector<KernelCost>& costs);

/// A trial's time by what takes it, largest first: the limits of its kernels, library calls, and what lies
/// between kernels. Empty where the trial has no such numbers.
struct TimePart {
  std::string name, meaning;
  double us = 0;
};
std::vector<TimePart> time_parts(const TrialResults& trial);

/// Why `slower` takes longer than `faster`: which of its parts grew, and the kernel of both that grew most,
/// with its launches.
std::string cause_of(const TrialResults& slower, const TrialResults& faster,
                     const std::vector<KernelResult>& slower_kernels,
                     const std::vector<KernelResult>& faster_kernels);

}  // namespace stitchwork
