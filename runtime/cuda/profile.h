// Hardware counters of a program's kernels, read by Nsight Compute.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stitchwork::cuda {

/// A counter of ours and Nsight Compute's metric (its documentation, "Metrics Reference"); ours is `scale`
/// times theirs in its base unit (ns, byte, ...). Those not `asked` for are other spellings that profiles may
/// hold.
struct ProfiledMetric {
  std::string_view counter, metric;
  double scale = 1;
  bool asked = true;
};
std::span<const ProfiledMetric> profiled_metrics();

/// (name, value) of one launch, by the names that the simulator gives its counters (docs/simulator.md); those
/// that the GPU does not have are left out.
using ProfiledCounters = std::vector<std::pair<std::string, double>>;

/// Runs `command` (the first is the program) under ncu, with an empty L2 before each kernel, and gives the
/// counters of every launch of a kernel called `kernel`, in order; without those that ncu does not know on
/// this GPU. Throws Error where ncu is not installed, fails, or profiles nothing.
std::vector<ProfiledCounters> profile(const std::vector<std::string>& command, const std::string& kernel);

/// What `ncu --csv --page raw --print-units base` wrote.
std::vector<ProfiledCounters> parse_profile(std::string_view csv);

}  // namespace stitchwork::cuda
