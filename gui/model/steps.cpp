#include "gui/model/steps.h"

#include <algorithm>

#include "analysis/facts/facts.h"
#include "analysis/judge/cost.h"
#include "analysis/plan/control_flow.h"

namespace stitchwork::gui {

std::optional<Scheme> StepRow::scheme() const {
  for (const Scheme s : {Scheme::kGlobal, Scheme::kResident, Scheme::kRegional, Scheme::kLocal,
                         Scheme::kIndependent, Scheme::kRecomputed})
    if (schemes[static_cast<std::size_t>(s)] > 0) return s;
  return std::nullopt;
}

namespace {

/// `graph`: whose entry the plan is of.
void add_rows(const Graph& graph, const Device& device, const FusionPlan& plan, int body, double runs,
              std::vector<StepRow>& rows) {
  const Computation& entry = graph.entry_computation();
  for (const PlanStep& step : plan.steps) {
    StepRow row;
    row.step = static_cast<int>(rows.size());
    row.body = body;
    row.runs = runs;
    if (body >= 0) row.within = entry.name;
    row.kernel = step.kernel;
    row.kind = step.kind;
    row.id = step.id;
    row.predicted_us = step.predicted_us;
    row.ops = static_cast<int>(step.nodes.size());
    if (!step.nodes.empty()) {  // a call is called after its product, whatever it adds to that
      const auto product =
          std::ranges::find_if(step.nodes, [&](NodeId op) { return is_product(entry.node(op)); });
      row.name = def(entry.node(product == step.nodes.end() ? step.nodes.back() : *product).op).name;
    }
    if (step.kind == StepKind::kKernel) {
      const KernelPlan& kernel = plan.kernels[static_cast<std::size_t>(step.kernel)];
      row.name = kernel.name;
      row.ops = static_cast<int>(kernel.ops.size());
      row.groups = static_cast<int>(kernel.groups.size());
      for (const auto& [op, scheme] : kernel.schemes) ++row.schemes[static_cast<std::size_t>(scheme)];
      row.grid = kernel.launch.grid;
      row.block = kernel.launch.block;
      row.barriers = kernel.launch.grid_barriers;
      row.shared_bytes = kernel.launch.shared_bytes;
      row.scratch_bytes = kernel.launch.scratch_bytes;
      row.register_bound = kernel.launch.register_bound;
      row.blocks_per_sm = kernel.launch.blocks_per_sm;
      const KernelCost cost = kernel_cost(graph, device, kernel);
      row.dram_bytes = cost.dram_read_bytes + cost.dram_write_bytes;
      row.time = cost.timed.time;
    }
    rows.push_back(std::move(row));
  }
}

/// How often each of the plan's computations runs. Callees come before their callers.
std::vector<double> runs_of(const Graph& graph, const FusionPlan& plan) {
  std::vector<double> runs(plan.computations.size());
  const auto add = [&](const Computation& computation, const FusionPlan& caller, double times) {
    for (const PlanStep& step : caller.steps) {
      if (step.kind != StepKind::kControl) continue;
      const Node& control = computation.node(step.nodes.at(0));
      const auto trips = static_cast<double>(step.trips.value_or(1));
      for (std::size_t i = 0; i < control.attrs.computations.size(); ++i)
        for (std::size_t c = 0; c < runs.size(); ++c)
          if (plan.computations[c].computation == control.attrs.computations[i])
            runs[c] += times * (control.op != Op::kWhile          ? 1
                                : i != 0                          ? trips
                                : is_counted(control, step.trips) ? 0
                                                                  : trips + 1);
    }
  };
  add(graph.entry_computation(), plan, 1);
  for (std::size_t c = runs.size(); c-- > 0;) {
    const ComputationPlan& part = plan.computations[c];
    add(graph.computations[static_cast<std::size_t>(part.computation)], part.plan, runs[c]);
  }
  return runs;
}

}  // namespace

std::vector<StepRow> step_rows(const Graph& model, const Device& device, const FusionPlan& plan) {
  const Graph& graph = planned_graph(model, plan);
  std::vector<StepRow> rows;
  add_rows(graph, device, plan, -1, 1, rows);
  double total = 0;
  for (const StepRow& row : rows) total += row.predicted_us;
  const std::vector<double> runs = runs_of(graph, plan);
  for (std::size_t c = 0; c < runs.size(); ++c)
    add_rows(entered(graph, plan.computations[c].computation), device, plan.computations[c].plan,
             static_cast<int>(c), runs[c], rows);
  for (StepRow& row : rows) row.share = total > 0 ? std::min(1.0, row.predicted_us * row.runs / total) : 0;
  return rows;
}

char badge(Scheme scheme) {
  constexpr std::string_view kLetters = "ILRSGC";
  return kLetters[static_cast<std::size_t>(scheme)];
}

std::string_view meaning(Scheme scheme) {
  switch (scheme) {
    case Scheme::kIndependent:
      return "written to device memory for other kernels; nothing in this kernel waits for it";
    case Scheme::kLocal:
      return "stays in the registers of the thread that computed it";
    case Scheme::kRegional:
      return "passes through shared memory to the threads of the same block";
    case Scheme::kResident:
      return "stays with the threads that made it across a grid barrier";
    case Scheme::kGlobal:
      return "passes through device memory to other blocks, behind a grid barrier";
    case Scheme::kRecomputed:
      return "computed again by every reader, as XLA and TVM inline it";
  }
  return "";
}

}  // namespace stitchwork::gui
