// How long steps and whole runs take: by events, repeated.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "runtime/cuda/backend.h"

namespace stitchwork::cuda {
namespace {

/// Kernels are repeated for about so long, to be many times the events' resolution (0.5 us, CUDA driver API).
constexpr double kRepeatedUs = 2000;
constexpr int kMostRepeats = 500;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? 0 : n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace

void CudaBackend::wait(const std::string& what) {
  driver_->check(driver_->stream_wait(lanes_[0]->stream.get()), "cuStreamSynchronize", what);
}

double CudaBackend::elapsed_us(const OwnedEvent& event) const {
  float ms = 0;
  driver_->check(driver_->event_elapsed(&ms, begin_.get(), event.get()), "cuEventElapsedTime", "timing");
  return 1e3 * static_cast<double>(ms);
}

double CudaBackend::median_us(int times, const std::function<void()>& pass) {
  std::vector<double> us;
  for (int i = 0; i < times; ++i) {
    if (options_.cache == sim::CacheMode::kCold) flush_cache();
    driver_->check(driver_->event_record(begin_.get(), lanes_[0]->stream.get()), "cuEventRecord", "timing");
    pass();
    driver_->check(driver_->event_record(end_.get(), lanes_[0]->stream.get()), "cuEventRecord", "timing");
    wait("timing");
    us.push_back(elapsed_us(end_));
  }
  return median(std::move(us));
}

void CudaBackend::flush_cache() {
  const auto bytes = static_cast<std::size_t>(2 * std::max(gpu_.l2_bytes, std::int64_t{1} << 20));
  if (!flushed_) {
    Pointer memory = 0;
    driver_->check(driver_->allocate(&memory, bytes), "cuMemAlloc", "memory to overwrite the L2 cache");
    flushed_ = OwnedMemory(*driver_, memory);
  }
  driver_->check(driver_->fill(flushed_.get(), 0, bytes, lanes_[0]->stream.get()), "cuMemsetD8Async",
                 "overwriting the L2 cache");
}

double CudaBackend::repeated_us(const Step& step) {
  if (options_.cache == sim::CacheMode::kCold)
    return median_us(options_.repeats, [&] { perform(step, *lanes_[0]); });
  perform(step, *lanes_[0]);
  const double one = median_us(1, [&] { perform(step, *lanes_[0]); });
  const int times =
      std::clamp(static_cast<int>(kRepeatedUs / std::max(one, 1.0)), options_.repeats, kMostRepeats);
  const double all = median_us(1, [&] {
    for (int i = 0; i < times; ++i) perform(step, *lanes_[0]);
  });
  return all / times;
}

std::optional<double> CudaBackend::graph_us(int times) {
  Capture capture(*driver_, lanes_[0]->stream.get());
  if (!capture) return std::nullopt;
  try {
    perform_all();
  } catch (const Error&) {  // a call that cannot be captured
    return std::nullopt;
  }
  const OwnedGraph graph = capture.end();
  GraphExec made = nullptr;
  if (!graph || driver_->graph_instantiate(&made, graph.get(), 0) != kSuccess) return std::nullopt;
  const OwnedGraphExec ready(*driver_, made);
  const auto pass = [&] {
    driver_->check(driver_->graph_launch(ready.get(), lanes_[0]->stream.get()), "cuGraphLaunch",
                   "CUDA graph");
  };
  pass();
  return median_us(times, pass);
}

Repeated CudaBackend::timed_in_place(int times) {
  std::map<std::size_t, std::size_t> last;  // of ours, by step of the plan
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (!steps_[i].once) last[steps_[i].planned] = i;
  for (const auto& [planned, own] : last) points_.emplace(own, make_event(kEventWithTiming));
  const auto pass_us = [&](bool points) {
    driver_->check(driver_->event_record(begin_.get(), lanes_[0]->stream.get()), "cuEventRecord", "timing");
    perform_all(points);
    driver_->check(driver_->event_record(end_.get(), lanes_[0]->stream.get()), "cuEventRecord", "timing");
    wait("timing");
    return elapsed_us(end_);
  };
  const std::size_t planned_steps = last.empty() ? 0 : last.rbegin()->first + 1;
  std::vector<double> plain;
  std::vector<std::pair<double, std::vector<double>>> timed;
  for (int i = 0; i < times; ++i) {
    plain.push_back(pass_us(false));
    timed.emplace_back(pass_us(true), std::vector<double>(planned_steps, 0));
    for (const auto& [planned, own] : last) timed.back().second[planned] = elapsed_us(points_.at(own));
  }
  std::sort(timed.begin(), timed.end());
  auto& middle = timed[timed.size() / 2];
  Repeated repeated{times, median(std::move(plain)), std::nullopt, middle.first, {}};
  repeated.ends_us = std::move(middle.second);
  return repeated;
}

void CudaBackend::settle(bool whole) {
  // Where the host took part, a second pass would not compute the same.
  if (!whole || options_.repeats == 0) return;
  if (options_.points) {
    prepare_lanes();
    perform_all();  // each step was done alone so far
    repeated_ = timed_in_place(options_.repeats);
    return;
  }
  std::map<std::pair<const CompiledKernel*, std::string>, double> known;  // of kernels and calls that recur
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto [at, fresh] = known.try_emplace({steps_[i].kernel, steps_[i].what}, 0);
    if (fresh) at->second = repeated_us(steps_[i]);
    step_us_[i] = at->second;
  }
  for (const Step& step : steps_)  // repeated alone they may have left something else
    if (step.once) perform(step, *lanes_[0]);
  prepare_lanes();
  const auto pass = [&] { perform_all(); };
  pass();  // results are those of a whole pass, whatever single steps have left
  wait("the last pass");
  repeated_ =
      Repeated{options_.repeats, median_us(options_.repeats, pass), graph_us(options_.repeats), 0, {}};
}

}  // namespace stitchwork::cuda
