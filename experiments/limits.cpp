#include "experiments/limits.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"

namespace stitchwork {
namespace {

void sort(std::vector<TimePart>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.us > b.us; });
}

}  // namespace

std::vector<TimePart> time_parts(const TrialResults& trial) {
  std::vector<TimePart> parts;
  const auto add = [&](std::string name, std::string_view metric, std::string_view meaning) {
    const Series* found = trial.find(std::string(metric));
    if (found != nullptr && found->median() > 0)
      parts.push_back({std::move(name), std::string(meaning), found->median(), found->method});
  };
  for (const Limit& limit : kLimits)
    add(fmt::format("kernels limited by {}", limit.name), limit.metric, limit.meaning);
  add("library calls", "library_us", "matrix products and convolutions");
  add("loops and branches", "control_us", "all that ran in them");
  add("between kernels", "overhead_us", "launch gaps, copies and memsets");
  sort(parts);
  return parts;
}

std::vector<TimePart> time_parts(const KernelResult& kernel) {
  std::vector<TimePart> parts;
  for (const Limit& limit : kLimits)
    if (const auto found = kernel.counters.find(std::string(limit.counter)); found != kernel.counters.end())
      parts.push_back(
          {std::string(limit.name), std::string(limit.meaning), found->second.value, found->second.method});
  sort(parts);
  return parts;
}

std::vector<UnitUse> unit_uses(const KernelResult& kernel) {
  std::vector<UnitUse> uses;
  for (std::size_t u = 0; u < kUnits.size(); ++u)
    if (const auto busy = kernel.counters.find(busy_metric(u));
        busy != kernel.counters.end() && kernel.time_us.value > 0)
      uses.push_back({u, busy->second.value / kernel.time_us.value,
                      made_of({busy->second.method, kernel.time_us.method})});
  std::stable_sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return uses;
}

std::string busiest_text(const std::vector<UnitUse>& uses, std::size_t most) {
  constexpr double kShown = 0.01;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, uses.size()) && uses[i].share >= kShown; ++i)
    text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", kUnits[uses[i].unit].name, 100 * uses[i].share);
  return text;
}

namespace {

/// "80 x 1024": blocks x threads, and barriers.
std::string launch_text(const KernelResult& k) {
  return fmt::format("{} blocks of {} threads, {} grid barriers", k.grid, k.block, k.barriers);
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
    if (known == before.end() || kernel.time_us.value <= known->second->time_us.value) continue;
    ++grown;
    if (most != nullptr &&
        kernel.time_us.value - known->second->time_us.value <= most->time_us.value - then->time_us.value)
      continue;
    most = &kernel;
    then = known->second;
  }
  if (most == nullptr) return "";
  return fmt::format("; {} kernels grew, most {}: {:.2f} us ({}) instead of {:.2f} us ({})", grown,
                     op_name(most->name), most->time_us.value, launch_text(*most), then->time_us.value,
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
  add("loops and branches", "control_us", kShown);
  add("between kernels", "overhead_us", kShown);
  if (text.empty()) return "less than a hundredth of a microsecond in any part";
  return text + grown_most(slower_kernels, faster_kernels);
}

}  // namespace stitchwork
