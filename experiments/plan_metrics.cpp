#include "experiments/plan_metrics.h"

#include <algorithm>
#include <utility>

#include "analysis/plan/control_flow.h"
#include "analysis/plan/plan_memory.h"

namespace stitchwork {
namespace {

/// Values in shared memory of a block: bytes as they were asked for, and as they lie.
struct SharedValues {
  std::int64_t requested = 0, allocated = 0;
};

SharedValues shared_values(const KernelPlan& kernel) {
  SharedValues result;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const MemorySlot& slot : kernel.shared) {
    if (slot.op == kNoNode) continue;  // what reductions combine through
    result.requested += slot.bytes;
    places.emplace_back(slot.offset, slot.offset + slot.bytes);
  }
  std::sort(places.begin(), places.end());
  std::int64_t end = 0;
  for (const auto& [first, last] : places) {
    result.allocated += std::max<std::int64_t>(0, last - std::max(first, end));
    end = std::max(end, last);
  }
  return result;
}

}  // namespace

std::vector<PlanMetric> plan_metrics(const Graph& graph, const FusionPlan& plan) {
  double kernels = 0, with_values = 0, with_values_us = 0, bytes = 0, most = 0, shrunk = 0;
  SharedValues values;
  const auto add = [&](const FusionPlan& of) {
    for (const KernelPlan& kernel : of.kernels) {
      const SharedValues own = shared_values(kernel);
      values.requested += own.requested;
      values.allocated += own.allocated;
      if (own.requested > 0) {
        ++with_values;
        with_values_us += kernel.predicted_us;
      }
      ++kernels;
      bytes += static_cast<double>(kernel.launch.shared_bytes);
      most = std::max(most, static_cast<double>(kernel.launch.shared_bytes));
      shrunk += kernel.shrunk.empty() ? 0 : 1;
    }
  };
  add(plan);
  for (const ComputationPlan& part : plan.computations) add(part.plan);
  const std::int64_t dynamic = plan.counts.dynamic_memory_kernels + dynamic_library_calls(graph, plan);
  return {{"dynamic_kernels", static_cast<double>(dynamic)},
          {"shared_kernels", with_values},
          {"shared_kernel_us", with_values_us},
          {"shared_bytes_average", kernels > 0 ? bytes / kernels : 0},
          {"shared_bytes_max", most},
          {"shared_requested_bytes", static_cast<double>(values.requested)},
          {"shared_allocated_bytes", static_cast<double>(values.allocated)},
          {"shrunk_kernels", shrunk},
          {"peak_device_bytes", static_cast<double>(plan_memory(graph, plan).peak_bytes)}};
}

}  // namespace stitchwork
