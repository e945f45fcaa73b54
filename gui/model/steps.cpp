#include "gui/model/steps.h"

#include <algorithm>

#include "analysis/cost.h"

namespace stitchwork::gui {

std::optional<Scheme> StepRow::scheme() const {
  for (const Scheme s : {Scheme::kGlobal, Scheme::kResident, Scheme::kRegional, Scheme::kLocal,
                         Scheme::kIndependent, Scheme::kRecomputed})
    if (schemes[static_cast<std::size_t>(s)] > 0) return s;
  return std::nullopt;
}

std::vector<StepRow> step_rows(const Graph& graph, const Device& device, const FusionPlan& plan) {
  const Computation& entry = graph.entry_computation();
  std::vector<StepRow> rows;
  double total = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    StepRow row;
    row.step = static_cast<int>(s);
    row.kernel = step.kernel;
    row.kind = step.kind;
    row.id = step.id;
    row.predicted_us = step.predicted_us;
    row.ops = static_cast<int>(step.nodes.size());
    if (!step.nodes.empty()) row.name = def(entry.node(step.nodes.back()).op).name;
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
    }
    total += row.predicted_us;
    rows.push_back(std::move(row));
  }
  for (StepRow& row : rows) row.share = total > 0 ? row.predicted_us / total : 0;
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
