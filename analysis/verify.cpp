#include "analysis/verify.h"

#include <algorithm>

#include "analysis/control_flow.h"
#include "analysis/verify_internal.h"
#include "core/error.h"
#include "core/interrupt.h"

namespace stitchwork {

std::vector<Verdict> verify(const Graph& graph, const Device& device, const FusionPlan& plan,
                            const PlanEvaluations* known) {
  using namespace verification;
  const Computation& computation = graph.entry_computation();
  Report report;
  if (plan.device != device.id)
    report.add("device", "the plan is for {}, it is checked for {}", plan.device, device.id);
  if (!plan.model_sha256.empty() && !graph.source_sha256.empty() && plan.model_sha256 != graph.source_sha256)
    report.add("model", "the plan was made for a model of SHA-256 {}, {} has {}", plan.model_sha256,
               graph.source, graph.source_sha256);
  const std::size_t header = report.problems.size();
  for (const KernelPlan& kernel : plan.kernels) check_structure(computation, kernel, report);
  // The rest follows ops through groups; with those broken it would only repeat the same problem.
  if (report.problems.size() > header) return std::move(report.problems);
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    interruption_point();
    const KernelPlan& kernel = plan.kernels[k];
    const std::size_t before = report.problems.size();
    check_mappings(computation, kernel, report);
    check_launch(computation, device, kernel, report);
    check_clusters(computation, device, kernel, report);
    if (report.problems.size() > before) continue;
    check_one_pass(graph, kernel, report);
    const auto check = [&](const KernelEvaluations& evaluated) {
      check_values(computation, kernel, evaluated, report);
      check_memory(computation, kernel, evaluated, report);
      check_residents(computation, kernel, evaluated, report);
      check_tiles(computation, kernel, evaluated, report);
    };
    if (known != nullptr)
      check(known->at(k));
    else
      check(evaluations(computation, kernel));
  }
  check_coverage(graph, plan, report);
  check_order(graph, plan, report);
  for (const ComputationPlan& part : plan.computations)
    for (const Verdict& problem : verify(entered(graph, part.computation), device, part.plan))
      report.problems.push_back(Verdict::no(
          problem.rule,
          fmt::format("computation {}: {}", graph.computation(part.computation).name, problem.why)));
  return std::move(report.problems);
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
