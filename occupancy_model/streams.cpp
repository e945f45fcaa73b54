#include "occupancy_model/streams.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

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

/// The step a stream is at.
struct At {
  std::vector<std::size_t> steps;  ///< of the stream, in order
  std::size_t next = 0;
  bool begun = false;
  double launch_us = 0;  ///< until it runs
  double work_us = 0;    ///< what is left of it, in time alone
  bool done() const { return next == steps.size(); }
  std::size_t step() const { return steps[next]; }
};

/// No quantity: below it a time is rounding.
constexpr double kDone = 1e-9;

class Schedule {
 public:
  Schedule(const Device& device, std::span<const StreamStep> steps)
      : device_(device), steps_(steps), spans_(steps.size()), ended_(steps.size(), false) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const int wait : steps[i].waits)
        SW_CHECK(wait >= 0 && static_cast<std::size_t>(wait) < i, "step {} waits for step {}", i, wait);
      at_[steps[i].stream].steps.push_back(i);
    }
  }

  std::vector<StreamSpan> run() {
    while (true) {
      double step = std::numeric_limits<double>::infinity();
      for (auto& [stream, a] : at_) step = std::min(step, begin(a));
      std::vector<At*> running;
      std::vector<Shares> shares;
      for (auto& [stream, a] : at_) {
        if (a.done() || !a.begun) continue;
        if (a.launch_us > 0) {
          step = std::min(step, a.launch_us);
        } else {
          running.push_back(&a);
          shares.push_back(shares_of(steps_[a.step()].kernel));
        }
      }
      const std::vector<double> speed = speeds(shares);
      for (std::size_t k = 0; k < running.size(); ++k) step = std::min(step, running[k]->work_us / speed[k]);
      if (step == std::numeric_limits<double>::infinity()) break;
      advance(step, running, speed);
    }
    for (const auto& [stream, a] : at_) SW_CHECK(a.done(), "steps wait for each other");
    return std::move(spans_);
  }

 private:
  /// Begins the step that the stream is at, if nothing but the clock keeps it back: then, how long.
  double begin(At& a) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    if (a.done() || a.begun) return kNever;
    const StreamStep& step = steps_[a.step()];
    for (const int wait : step.waits)
      if (!ended_[static_cast<std::size_t>(wait)]) return kNever;
    const KernelTime& t = step.kernel.alone;
    SW_CHECK(t.total_us >= t.launch_us && t.launch_us >= 0);
    const double gap = a.next == 0 && step.waits.empty() ? 0 : device_.launch_gap_us;
    if (const double left = step.dispatched_us - gap - now_; left > kDone) return left;
    spans_[a.step()].begin_us = now_ + gap;
    a.begun = true;
    a.launch_us = gap + t.launch_us;
    a.work_us = t.total_us - t.launch_us;
    return kNever;
  }

  void advance(double step, const std::vector<At*>& running, const std::vector<double>& speed) {
    now_ += step;
    for (auto& [stream, a] : at_)
      if (!a.done() && a.begun && a.launch_us > 0)
        a.launch_us = a.launch_us - step <= kDone ? 0 : a.launch_us - step;
    for (std::size_t k = 0; k < running.size(); ++k) {
      At& a = *running[k];
      a.work_us -= step * speed[k];
      if (a.work_us > kDone) continue;
      spans_[a.step()].end_us = now_;
      ended_[a.step()] = true;
      ++a.next;
      a.begun = false;
    }
  }

  const Device& device_;
  std::span<const StreamStep> steps_;
  std::vector<StreamSpan> spans_;
  std::vector<bool> ended_;
  std::map<int, At> at_;  ///< by stream
  double now_ = 0;
};

}  // namespace

std::vector<StreamSpan> run_schedule(const Device& device, std::span<const StreamStep> steps) {
  return Schedule(device, steps).run();
}

std::vector<std::vector<StreamSpan>> share_device(const Device& device,
                                                  std::span<const std::vector<StreamKernel>> streams) {
  std::vector<StreamStep> steps;
  for (std::size_t s = 0; s < streams.size(); ++s)
    for (const StreamKernel& kernel : streams[s]) steps.push_back({kernel, static_cast<int>(s)});
  const std::vector<StreamSpan> flat = run_schedule(device, steps);
  std::vector<std::vector<StreamSpan>> spans(streams.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    spans[static_cast<std::size_t>(steps[i].stream)].push_back(flat[i]);
  return spans;
}

}  // namespace stitchwork
