#include "analysis/judge/step_times.h"

#include <algorithm>

#include "core/base/error.h"

namespace stitchwork {

std::vector<StreamKernel> with_times(std::vector<StreamKernel> kernels, std::span<const double> us) {
  SW_CHECK(kernels.size() == us.size(), "{} times of {} steps", us.size(), kernels.size());
  for (std::size_t s = 0; s < us.size(); ++s) {
    KernelTime& t = kernels[s].alone;
    const double scale = t.total_us > 0 ? us[s] / t.total_us : 0;
    for (double* part : {&t.launch_us, &t.dram_us, &t.l2_us, &t.issue_us}) *part *= scale;
    t.total_us = us[s];
  }
  return kernels;
}

std::vector<StreamSpan> step_spans(const Device& device, const FusionPlan& plan,
                                   std::span<const StreamKernel> kernels, double dispatch_us) {
  std::vector<StreamStep> steps;
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    steps.push_back(
        {kernels[s], plan.steps[s].stream, plan.steps[s].waits, dispatch_us * static_cast<double>(s + 1)});
  return run_schedule(device, steps);
}

double last_end_us(std::span<const StreamSpan> spans) {
  double last = 0;
  for (const StreamSpan& span : spans) last = std::max(last, span.end_us);
  return last;
}

}  // namespace stitchwork
