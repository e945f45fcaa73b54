// One iteration of a profiled program: the launches that it repeats, each with its times over all repeats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiments/profile/profile.h"

namespace stitchwork {

/// A launch of an iteration.
struct ProfileLaunch {
  ProfileKind kind = ProfileKind::kKernel;
  std::string kernel, module, instruction, op, grid, block;  ///< as ProfileEvent has them
  std::int64_t stream = 0;
  std::int64_t samples = 0;  ///< iterations that have it
  double mean_us = 0, least_us = 0, most_us = 0;
  bool timed = false;                      ///< else the tool gave no times
  std::map<std::string, double> counters;  ///< means
};

struct ProfileIterations {
  std::int64_t iterations = 1;
  std::string how;                      ///< why so many
  std::vector<ProfileLaunch> launches;  ///< in the order of the first iteration
  std::optional<double> iteration_us;   ///< median from the first begin to the last end; none without a clock
  std::size_t left_out = 0;             ///< events before, between and behind iterations
  std::size_t transfers = 0;            ///< copies from and to the host or other GPUs, of all iterations
};

struct IterationOptions {
  std::optional<std::int64_t> given;  ///< so many there are
  std::optional<std::int64_t> most;   ///< by names of which each iteration has one: so many or one less
  std::vector<std::pair<double, double>> steps;  ///< Profile::steps
  bool clock = true;                             ///< Profile::clock
};

/// `events`: of one GPU, ascending by start. Iterations are, in this order, the steps that the program itself
/// named; the longest stretch of the busiest stream in which the same kernels come again in the same order;
/// everything. Throws Error naming `file` where `given` does not fit.
ProfileIterations find_iterations(std::span<const ProfileEvent* const> events,
                                  const IterationOptions& options, const std::string& file);

}  // namespace stitchwork
