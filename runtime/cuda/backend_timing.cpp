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

double CudaBackend::elapsed_us() const {
  float ms = 0;
  driver_->check(driver_->event_elapsed(&ms, begin_.get(), end_.get()), "cuEventElapsedTime", "timing");
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
    us.push_back(elapsed_us());
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

void CudaBackend::settle(bool whole) {
  // Where the host took part, a second pass would not compute the same.
  if (!whole || options_.repeats == 0) return;
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
  repeated_ = Repeated{options_.repeats, median_us(options_.repeats, pass), graph_us(options_.repeats)};
}

}  // namespace stitchwork::cuda
