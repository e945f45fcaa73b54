// The numbers of a trial as a whole, each with how it was obtained, and what limits its kernels.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/trial.h"
#include "occupancy_model/timing.h"

namespace stitchwork {

/// A part of a kernel's time (occupancy_model/timing.h): the counter of a kernel that holds it, the metric of
/// a trial that holds the time of the kernels it takes most of, and what that means.
struct Limit {
  std::string_view name, counter, metric, meaning;
  double KernelTime::*part;
};
inline constexpr std::array<Limit, 7> kLimits = {{
    {"DRAM", "time_dram_us", "limit_dram_us", "bytes from and to memory at the sustained bandwidth",
     &KernelTime::dram_us},
    {"L2", "time_l2_us", "limit_l2_us", "sectors through the L2", &KernelTime::l2_us},
    {"issue", "time_issue_us", "limit_issue_us", "instructions: arithmetic, addresses, loads and stores",
     &KernelTime::issue_us},
    {"latency", "time_latency_us", "limit_latency_us",
     "too few loads in flight, or too few warps, to hide the memory's latency", &KernelTime::latency_us},
    {"tail", "time_tail_us", "limit_tail_us",
     "uneven work, a last wave that is not full, and SMs without a block", &KernelTime::tail_us},
    {"barriers", "time_barrier_us", "limit_barrier_us", "grid barriers inside kernels",
     &KernelTime::barrier_us},
    {"launch", "time_launch_us", "limit_launch_us",
     "kernels so small that an empty one takes most of their time", &KernelTime::launch_us},
}};

/// The counter that holds what a kernel needs of a unit at its peak: "busy_dram_us" of the first of kUnits.
std::string busy_metric(std::size_t unit);

/// One number of a trial, in the metric's unit (experiments/metrics.h). `method` names every method that the
/// number is made of: "simulated + modelled" is a sum of both.
struct TrialMetric {
  std::string_view metric;
  double value = 0;
  std::string method;
};

/// What the store records of the trial. The parts of total_us are kernel_us, library_us, control_us and
/// overhead_us; they add up to it.
std::vector<TrialMetric> trial_metrics(const Model& model, const TrialSpec& spec, const TrialResult& result);

}  // namespace stitchwork
