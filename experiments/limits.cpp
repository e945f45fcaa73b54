#include "experiments/limits.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "occupancy_model/timing.h"

namespace stitchwork {
namespace {

/// The parts of the modelled time, by index of kLimits.
LimitTimes parts_of(const KernelTime& t) {
  return {t.dram_us, t.l2_us, t.issue_us, t.latency_us, t.barrier_us, t.launch_us};
}

}  // namespace

LimitTimes limit_times(const Device& device, const std::vector<KernelCost>& costs) {
  LimitTimes times{};
  for (const KernelCost& cost : costs) {
    const LimitTimes parts = parts_of(kernel_time(device, cost.work));
    times[static_cast<std::size_t>(std::max_element(parts.begin(), parts.end()) - parts.begin())] +=
        cost.predicted_us;
  }
  return times;
}

std::vector<TimePart> time_parts(const TrialResults& trial) {
  std::vector<TimePart> parts;
  const auto add = [&](std::string name, std::string_view metric, std::string_view meaning) {
    if (const auto us = trial.median(std::string(metric)); us && *us > 0)
      parts.push_back({std::move(name), std::string(meaning), *us});
  };
  for (const Limit& limit : kLimits)
    add(fmt::format("kernels limited by {}", limit.name), limit.metric, limit.meaning);
  add("library calls", "library_us", "matrix products and convolutions");
  add("between kernels", "overhead_us", "launch gaps, copies and memsets");
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.us > b.us; });
  return parts;
}

namespace {

/// "80 x 1024": blocks x threads, and barriers.
std::string launch_text(const KernelResult& k) {
  const auto first = [](const std::string& extents) { return extents.substr(1, extents.find(',') - 1); };
  return fmt::format("{} blocks of {} threads, {} grid barriers", first(k.grid), first(k.block),
                     k.grid_barriers);
}

/// Without its number in the plan: "k12 divide_3" is "divide_3".
std::string op_name(const std::string& kernel) {
  const std::size_t space = kernel.find(' ');
  return space == std::string::npos ? kernel : kernel.substr(space + 1);
}

/// Of the kernels that end in the same op, the one that grew most; "" if none grew.
std::string grown_most(const std::vector<KernelResult>& slower, const std::vector<KernelResult>& faster) {
  std::map<std::string, const KernelResult*> before;
  for (const KernelResult& kernel : faster) before.emplace(op_name(kernel.name), &kernel);
  const KernelResult *most = nullptr, *then = nullptr;
  int grown = 0;
  for (const KernelResult& kernel : slower) {
    const auto known = before.find(op_name(kernel.name));
    if (known == before.end() || kernel.time_us <= known->second->time_us) continue;
    ++grown;
    if (most != nullptr && kernel.time_us - known->second->time_us <= most->time_us - then->time_us) continue;
    most = &kernel;
    then = known->second;
  }
  if (most == nullptr) return "";
  return fmt::format("; {} kernels grew, most {}: {:.2f} us ({}) instead of {:.2f} us ({})", grown,
                     op_name(most->name), most->time_us, launch_text(*most), then->time_us,
                     launch_text(*then));
}

}  // namespace

std::string cause_of(const TrialResults& slower, const TrialResults& faster,
                     const std::vector<KernelResult>& slower_kernels,
                     const std::vector<KernelResult>& faster_kernels) {
  std::string text;
  const auto add = [&](std::string_view what, const std::string& metric, double least) {
    const auto a = slower.median(metric), b = faster.median(metric);
    if (!a || !b || !(std::abs(*a - *b) >= least)) return;
    text += fmt::format("{}{} {:+.2f} us", text.empty() ? "" : ", ", what, *a - *b);
  };
  constexpr double kShown = 0.005;
  add("kernels", "kernel_us", kShown);
  add("library calls", "library_us", kShown);
  add("between kernels", "overhead_us", kShown);
  if (text.empty()) return "less than a hundredth of a microsecond in any part";
  return text + grown_most(slower_kernels, faster_kernels);
}

}  // namespace stitchwork
