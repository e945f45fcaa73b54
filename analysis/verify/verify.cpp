#include "analysis/verify/verify.h"

#include <algorithm>
#include <iterator>

#include "analysis/plan/control_flow.h"
#include "analysis/verify/verify_internal.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/interrupt.h"
#include "core/base/parallel.h"

namespace stitchwork {
namespace verification {
namespace {

/// A kernel whose structure is sound. `known`: what it evaluates, if that has been found out.
void check_kernel(const Graph& graph, const Device& device, const KernelPlan& kernel,
                  const KernelEvaluations* known, Report& report) {
  interruption_point();
  const Computation& computation = graph.entry_computation();
  check_mappings(computation, device.vector_bytes(), kernel, report);
  if (!report.problems.empty()) return;  // what follows counts by them
  check_launch(computation, device, kernel, report);
  check_clusters(computation, device, kernel, report);
  if (!report.problems.empty()) return;
  check_one_pass(graph, kernel, report);
  const auto check = [&](const KernelEvaluations& evaluated) {
    check_values(computation, kernel, evaluated, report);
    check_memory(computation, kernel, evaluated, report);
    check_residents(computation, kernel, evaluated, report);
    check_tiles(computation, device, kernel, evaluated, report);
  };
  if (known != nullptr)
    check(*known);
  else
    check(evaluations(computation, kernel));
  if (report.problems.empty()) check_schedule(graph, kernel, report);
}

}  // namespace
}  // namespace verification

std::vector<Verdict> verify(const Graph& model, const Device& device, const FusionPlan& plan,
                            const PlanEvaluations* known) {
  using namespace verification;
  const Graph& graph = planned_graph(model, plan);
  const Computation& computation = graph.entry_computation();
  Report report;
  if (plan.device != device.id)
    report.add("device", "the plan is for {}, it is checked for {}", plan.device, device.id);
  if (!plan.model_sha256.empty() && !graph.source_sha256.empty() && plan.model_sha256 != graph.source_sha256)
    report.add("model", "the plan was made for a model of SHA-256 {}, {} has {}", plan.model_sha256,
               graph.source, graph.source_sha256);
  check_places(computation, report);
  const std::size_t header = report.problems.size();
  for (const KernelPlan& kernel : plan.kernels) check_structure(computation, kernel, report);
  // The rest follows ops through groups; with those broken it would only repeat the same problem.
  if (report.problems.size() > header) return std::move(report.problems);
  std::vector<Report> reports(plan.kernels.size());
  parallel_for(reports.size(), [&](std::size_t k) {
    check_kernel(graph, device, plan.kernels[k], known != nullptr ? &known->at(k) : nullptr, reports[k]);
  });
  for (Report& kernel : reports)
    std::move(kernel.problems.begin(), kernel.problems.end(), std::back_inserter(report.problems));
  check_coverage(graph, plan, report);
  check_order(graph, plan, report);
  for (const ComputationPlan& part : plan.computations)
    for (const Verdict& problem : verify(entered(graph, part.computation), device, part.plan))
      report.problems.push_back(Verdict::no(
          problem.rule,
          fmt::format("computation {}: {}", graph.computation(part.computation).name, problem.why)));
  return std::move(report.problems);
}

std::vector<Verdict> verify_values(const Graph& graph, const Device& device, const KernelPlan& kernel,
                                   const KernelEvaluations& found) {
  using namespace verification;
  const Computation& computation = graph.entry_computation();
  Report report;
  check_structure(computation, kernel, report);
  if (report.problems.empty()) check_mappings(computation, device.vector_bytes(), kernel, report);
  if (report.problems.empty()) check_values(computation, kernel, found, report);
  return std::move(report.problems);
}

void require_grids(const Graph& graph, const FusionPlan& plan) {
  for (const KernelPlan& kernel : plan.kernels) {
    if (kernel.launch.grid <= kMaxGrid) continue;
    const Node& first = graph.entry_computation().node(kernel.ops.front());
    throw Error(
        graph.source, 0, 0,
        fmt::format("{} is too large for planner {}: a kernel of it would be a grid of {} blocks, CUDA "
                    "launches {} at most",
                    to_text(first.shape), plan.planner, with_commas(kernel.launch.grid),
                    with_commas(kMaxGrid)),
        "take a smaller array, or planner astitch, whose blocks have several tasks each");
  }
}

void require_valid(const Graph& graph, const Device& device, const FusionPlan& plan,
                   const std::string& file) {
  const std::vector<Verdict> problems = verify(graph, device, plan);
  if (problems.empty()) return;
  std::string message = fmt::format("not a valid plan: {} [{}]", problems[0].why, problems[0].rule);
  if (problems.size() > 1) message += fmt::format(" (and {} more)", problems.size() - 1);
  throw Error(file, 0, 0, std::move(message), "correct the plan; `stitchwork verify` lists every problem");
}

}  // namespace stitchwork
