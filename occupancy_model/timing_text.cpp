#include "occupancy_model/timing_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

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

std::string to_text(const KernelTime& time) {
  const std::string_view largest = limiter(time);
  std::string text;
  for (const auto& [name, us] : parts(time))
    text += fmt::format(
        "{:<18} {:>12.2f} us{}{}\n", name, us, name == largest ? "  <- limits" : "",
        name == kIssueName && !time.issue_pipe.empty() ? fmt::format("  ({})", time.issue_pipe) : "");
  return text +
         fmt::format("{:<18} {:>12.2f} us  (DRAM, L2, issue and latency overlap)\n", "total", time.total_us);
}

}  // namespace stitchwork
