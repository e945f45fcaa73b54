#include "occupancy_model/timing_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace stitchwork {
namespace {

constexpr std::string_view kIssueName = "instruction issue";

std::array<std::pair<std::string_view, double>, 7> parts(const KernelTime& t) {
  return {{{"launch", t.launch_us},
           {"DRAM bandwidth", t.dram_us},
           {"L2 bandwidth", t.l2_us},
           {kIssueName, t.issue_us},
           {"memory latency", t.latency_us},
           {"uneven work, tail", t.tail_us},
           {"grid barriers", t.barrier_us}}};
}

}  // namespace

std::string_view limiter(const KernelTime& time) {
  const auto all = parts(time);
  return std::max_element(all.begin(), all.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

std::string limited_by(const KernelTime& time) {
  const std::string_view largest = limiter(time);
  return largest == kIssueName && !time.issue_pipe.empty()
             ? fmt::format("{} ({})", kIssueName, time.issue_pipe)
             : std::string(largest);
}

std::string busiest_units(const KernelTime& time, std::size_t most) {
  // A choice, not measured: what is less than a percent says nothing of the kernel.
  constexpr double kShown = 0.01;
  std::vector<std::size_t> order;
  for (std::size_t u = 0; u < kUnits.size(); ++u)
    if (unit_share(time, u) >= kShown) order.push_back(u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return time.busy_us[a] > time.busy_us[b]; });
  std::string text;
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i)
    text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", kUnits[order[i]].name,
                        100 * unit_share(time, order[i]));
  return text;
}

std::string to_text(const KernelTime& time) {
  const std::string_view largest = limiter(time);
  std::string text;
  for (const auto& [name, us] : parts(time))
    text += fmt::format(
        "{:<18} {:>12.2f} us{}{}\n", name, us, name == largest ? "  <- limits" : "",
        name == kIssueName && !time.issue_pipe.empty() ? fmt::format("  ({})", time.issue_pipe) : "");
  text += fmt::format("{:<18} {:>12.2f} us  (DRAM, L2, issue and latency overlap)\n", "total", time.total_us);
  const std::string units = busiest_units(time);
  return units.empty() ? text : text + fmt::format("{:<18} {}\n", "of each peak", units);
}

}  // namespace stitchwork
