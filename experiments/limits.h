// What limits a workload: the part of the timing model that takes most of each kernel (docs/timing.md).
#pragma once

#include <string>
#include <vector>

#include "experiments/results.h"
#include "experiments/trial_metrics.h"

namespace stitchwork {

/// A trial's time by what takes it, largest first: the limits of its kernels, library calls, loops and
/// branches, and what lies between kernels. Empty where the trial has no such numbers.
struct TimePart {
  std::string name, meaning;
  double us = 0;
  std::string method;
};
std::vector<TimePart> time_parts(const TrialResults& trial);

/// The parts of a kernel's own time, largest first, as the store has them; parts overlap, so that they may
/// add up to more than the time.
std::vector<TimePart> time_parts(const KernelResult& kernel);

/// What a kernel does of what each unit of the device could do in its time, busiest first, as the store has
/// it: what the unit needs at its peak over the kernel's time. Of a kernel that a clock timed, the former is
/// modelled and the latter measured.
struct UnitUse {
  std::size_t unit = 0;  ///< index into kUnits
  double share = 0;
  std::string method;
};
std::vector<UnitUse> unit_uses(const KernelResult& kernel);
/// "DRAM 83 %, L2 31 %": the first `most` of those, of a percent and more; "" where there are none.
std::string busiest_text(const std::vector<UnitUse>& uses, std::size_t most);

/// Why `slower` takes longer than `faster`: which of its parts grew, and the kernel of both that grew most,
/// with its launches.
std::string cause_of(const TrialResults& slower, const TrialResults& faster,
                     const std::vector<KernelResult>& slower_kernels,
                     const std::vector<KernelResult>& faster_kernels);

}  // namespace stitchwork
