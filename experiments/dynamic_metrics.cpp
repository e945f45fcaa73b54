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
using CategoryTotals = std::array<Totals, kCategories.size()>;

/// `runs`: of the plan's kernels, by index.
void add_kernels(const Computation& computation, const FusionPlan& plan, const std::vector<KernelRun>& runs,
                 CategoryTotals& totals) {
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    Totals& of = totals[static_cast<std::size_t>(category_of(computation, plan.kernels[k]))];
    ++of.kernels;
    of.us += runs[k].time_us;
    if (runs[k].launches > 0) of.methods.insert(std::string(name(runs[k].method)));
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
  CategoryTotals totals;
  add_kernels(model.graph.entry_computation(), plan, result.run.kernels, totals);
  Totals calls;
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    if (plan.steps[s].kind == StepKind::kLibrary) {
      calls.us += result.run.steps[s].time_us;
      calls.methods.insert(std::string(name(result.run.steps[s].method)));
    }
  for (std::size_t c = 0; c < result.run.computations.size(); ++c) {
    const ComputationPlan& part = plan.computations[c];
    const ComputationRun& run = result.run.computations[c];
    add_kernels(model.graph.computation(part.computation), part.plan, run.kernels, totals);
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
  for (std::size_t c = 0; c < totals.size(); ++c) {
    all.push_back({kCategories[c].kernels, static_cast<double>(totals[c].kernels), modelled});
    all.push_back({kCategories[c].us, totals[c].us, method(totals[c])});
    kernels.us += totals[c].us;
    kernels.methods.insert(totals[c].methods.begin(), totals[c].methods.end());
  }
  all.push_back({"dynamic_kernel_us", kernels.us, method(kernels)});
  all.push_back({"dynamic_library_us", calls.us, method(calls)});
  all.push_back(
      {"dynamic_memory_kernels", static_cast<double>(plan.counts.dynamic_memory_kernels), modelled});
  all.push_back({"dram_bytes", static_cast<double>(result.cost.dram_bytes), modelled});
  return all;
}

}  // namespace stitchwork
