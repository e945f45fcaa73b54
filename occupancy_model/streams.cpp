#include "occupancy_model/streams.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/error.h"

namespace stitchwork {
namespace {

enum Resource { kDram, kL2, kIssue, kSms, kResources };
using Shares = std::array<double, kResources>;

/// What the kernel takes of the device while it runs alone, its launch apart.
Shares shares_of(const StreamKernel& kernel) {
  const KernelTime& t = kernel.alone;
  const double runs = t.total_us - t.launch_us;
  if (runs <= 0) return {};
  const auto of = [runs](double us) { return std::clamp(us / runs, 0.0, 1.0); };
  return {of(t.dram_us), of(t.l2_us), of(t.issue_us), std::clamp(kernel.resident_share, 0.0, 1.0)};
}

/// How fast each runs of its speed alone: all alike until something they need is used up, then those that do
/// not need it go on being raised (max-min fair).
std::vector<double> speeds(const std::vector<Shares>& running) {
  std::vector<double> speed(running.size(), 0);
  std::vector<bool> fixed(running.size(), false);
  Shares left;
  left.fill(1);
  while (std::find(fixed.begin(), fixed.end(), false) != fixed.end()) {
    double raise = 1;
    for (std::size_t k = 0; k < running.size(); ++k)
      if (!fixed[k]) raise = std::min(raise, 1 - speed[k]);
    Shares wanted{};
    for (std::size_t k = 0; k < running.size(); ++k)
      for (std::size_t r = 0; r < kResources; ++r)
        if (!fixed[k]) wanted[r] += running[k][r];
    for (std::size_t r = 0; r < kResources; ++r)
      if (wanted[r] > 0) raise = std::min(raise, left[r] / wanted[r]);
    // No quantity: below it a share is rounding.
    constexpr double kNothing = 1e-12;
    for (std::size_t r = 0; r < kResources; ++r) left[r] -= raise * wanted[r];
    for (std::size_t k = 0; k < running.size(); ++k) {
      if (fixed[k]) continue;
      speed[k] += raise;
      fixed[k] = speed[k] >= 1 - kNothing;
      for (std::size_t r = 0; r < kResources; ++r)
        fixed[k] = fixed[k] || (running[k][r] > 0 && left[r] <= kNothing);
    }
  }
  return speed;
}

/// The kernel a stream is at.
struct At {
  std::size_t next = 0;
  double launch_us = 0;  ///< until it runs
  double work_us = 0;    ///< what is left of it, in time alone
};

}  // namespace

std::vector<std::vector<StreamSpan>> share_device(const Device& device,
                                                  std::span<const std::vector<StreamKernel>> streams) {
  std::vector<std::vector<StreamSpan>> spans(streams.size());
  std::vector<At> at(streams.size());
  const auto begin = [&](std::size_t s, double now, double gap) {
    if (at[s].next == streams[s].size()) return;
    const KernelTime& t = streams[s][at[s].next].alone;
    SW_CHECK(t.total_us >= t.launch_us && t.launch_us >= 0);
    spans[s].push_back({now + gap, 0});
    at[s].launch_us = gap + t.launch_us;
    at[s].work_us = t.total_us - t.launch_us;
  };
  for (std::size_t s = 0; s < streams.size(); ++s) begin(s, 0, 0);
  for (double now = 0;;) {
    std::vector<std::size_t> running;
    std::vector<Shares> shares;
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (at[s].next == streams[s].size()) continue;
      if (at[s].launch_us > 0) {
        step = std::min(step, at[s].launch_us);
      } else {
        running.push_back(s);
        shares.push_back(shares_of(streams[s][at[s].next]));
      }
    }
    const std::vector<double> speed = speeds(shares);
    for (std::size_t k = 0; k < running.size(); ++k) step = std::min(step, at[running[k]].work_us / speed[k]);
    if (step == std::numeric_limits<double>::infinity()) return spans;
    now += step;
    // No quantity: below it a time is rounding.
    constexpr double kDone = 1e-9;
    for (std::size_t s = 0; s < streams.size(); ++s)
      if (at[s].next < streams[s].size() && at[s].launch_us > 0)
        at[s].launch_us = at[s].launch_us - step <= kDone ? 0 : at[s].launch_us - step;
    for (std::size_t k = 0; k < running.size(); ++k) {
      At& a = at[running[k]];
      a.work_us -= step * speed[k];
      if (a.work_us > kDone) continue;
      spans[running[k]].back().end_us = now;
      ++a.next;
      begin(running[k], now, device.launch_gap_us);
    }
  }
}

}  // namespace stitchwork
