#include "experiments/dynamic_metrics.h"

#include <algorithm>
#include <set>

#include "experiments/results.h"

namespace stitchwork {
namespace {

struct Totals {
  double us = 0;
  int kernels = 0;  ///< of the plan, each once
  std::set<std::string> methods;
};

/// Metrics of each category, by its enumerator.
struct CategoryNames {
  std::string_view kernels, us;
};
constexpr std::array<CategoryNames, 3> kCategories = {{
    {"elementwise_kernels", "elementwise_us"},
    {"reduction_kernels", "reduction_us"},
    {"product_kernels", "product_us"},
}};
/// Of each category, and of the kernels that keep values in shared memory.
struct KernelTotals {
  std::array<Totals, kCategories.size()> by_category;
  Totals shared;
};

void add_kernel(Totals& totals, const KernelRun& run) {
  ++totals.kernels;
  totals.us += run.time_us;
  if (run.launches > 0) totals.methods.insert(std::string(name(run.method)));
}

/// `runs`: of the plan's kernels, by index.
void add_kernels(const Computation& computation, const FusionPlan& plan, const std::vector<KernelRun>& runs,
                 KernelTotals& totals) {
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const KernelPlan& kernel = plan.kernels[k];
    add_kernel(totals.by_category[static_cast<std::size_t>(category_of(computation, kernel))], runs[k]);
    const auto is_value = [](const MemorySlot& slot) { return slot.op != kNoNode; };
    if (std::ranges::any_of(kernel.shared, is_value)) add_kernel(totals.shared, runs[k]);
  }
}

}  // namespace

KernelCategory category_of(const Computation& computation, const KernelPlan& kernel) {
  const auto any = [&](auto is) {
    return std::ranges::any_of(kernel.ops, [&](NodeId op) { return is(computation.node(op).op); });
  };
  if (any([](Op op) { return op == Op::kDot; })) return KernelCategory::kProduct;
  if (any([](Op op) { return def(op).cls == OpClass::kReduce; })) return KernelCategory::kReduction;
  return KernelCategory::kElementwise;
}

std::vector<TrialMetric> dynamic_metrics(const Model& model, const TrialResult& result) {
  const FusionPlan& plan = result.executable.plan;
  const Graph& graph = planned_graph(model.graph, plan);
  KernelTotals totals;
  add_kernels(graph.entry_computation(), plan, result.run.kernels, totals);
  Totals calls;
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    if (plan.steps[s].kind == StepKind::kLibrary) {
      calls.us += result.run.steps[s].time_us;
      calls.methods.insert(std::string(name(result.run.steps[s].method)));
    }
  for (std::size_t c = 0; c < result.run.computations.size(); ++c) {
    const ComputationPlan& part = plan.computations[c];
    const ComputationRun& run = result.run.computations[c];
    add_kernels(graph.computation(part.computation), part.plan, run.kernels, totals);
    for (const PlanStep& step : part.plan.steps)
      if (step.kind == StepKind::kLibrary) {
        calls.us += static_cast<double>(run.runs) * step.predicted_us;
        calls.methods.insert(std::string(name(Method::kModelled)));
      }
  }
  const std::string modelled(name(Method::kModelled));
  const auto method = [&](const Totals& of) {
    std::set<std::string> methods = of.methods;
    // Kernels too small for a sample are run whole: the sum is a sample all the same.
    if (methods.contains("sampled")) methods.erase("simulated");
    return methods.empty() ? modelled : made_of(methods);
  };
  std::vector<TrialMetric> all;
  Totals kernels;
  for (std::size_t c = 0; c < totals.by_category.size(); ++c) {
    all.push_back({kCategories[c].kernels, static_cast<double>(totals.by_category[c].kernels), modelled});
    all.push_back({kCategories[c].us, totals.by_category[c].us, method(totals.by_category[c])});
    kernels.us += totals.by_category[c].us;
    kernels.methods.insert(totals.by_category[c].methods.begin(), totals.by_category[c].methods.end());
  }
  all.push_back({"dynamic_kernel_us", kernels.us, method(kernels)});
  all.push_back({"dynamic_shared_kernel_us", totals.shared.us, method(totals.shared)});
  all.push_back({"dynamic_library_us", calls.us, method(calls)});
  all.push_back(
      {"dynamic_memory_kernels", static_cast<double>(plan.counts.dynamic_memory_kernels), modelled});
  all.push_back({"dram_bytes", static_cast<double>(result.cost.dram_bytes),
                 plan.peer == nullptr ? modelled : "simulated"});
  return all;
}

}  // namespace stitchwork
