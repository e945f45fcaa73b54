#include "analysis/explain/compare.h"

#include <algorithm>
#include <chrono>

#include "analysis/judge/cost.h"
#include "analysis/plan/control_flow.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

bool honours(const Planner& row, const std::vector<Edit>& edits) {
  return std::all_of(edits.begin(), edits.end(), [&](const Edit& edit) {
    return std::find(row.edits.begin(), row.edits.end(), edit.kind) != row.edits.end();
  });
}

}  // namespace

void require_honoured(const std::vector<std::string>& names, const PlanOptions& options) {
  for (const auto& knob : options.knobs) {
    const bool honoured = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      const auto& row = planner(name).knobs;
      return std::find(row.begin(), row.end(), knob.first) != row.end();
    });
    if (!honoured)
      throw Error(fmt::format("none of these planners has a knob '{}'", knob.first),
                  "see `stitchwork planners`");
  }
  if (!options.edits.empty() && std::none_of(names.begin(), names.end(), [&](const std::string& name) {
        return honours(planner(name), options.edits);
      }))
    throw Error("none of these planners honours the overrides", "see docs/planners/overrides.md");
  if (options.library != nullptr && std::none_of(names.begin(), names.end(), [](const std::string& name) {
        return planner(name).takes_library;
      }))
    throw Error("none of these planners takes a performance library", "see `stitchwork library --help`");
}

CompareRow row_of(const Graph& graph, const FusionPlan& plan, double plan_ms) {
  const PlanCost cost = plan_cost(graph, device(plan.device), plan);
  CompareRow row{plan.planner,
                 plan.device,
                 plan.counts.memory_kernels,
                 plan.counts.library_calls,
                 plan.counts.copies,
                 cost.grid_barriers,
                 cost.predicted_us,
                 cost.dram_bytes,
                 cost.recomputed_elements,
                 plan_ms,
                 plan.counts.dynamic_memory_kernels};
  row.product_kernels = plan.counts.product_kernels;
  row.once_us = cost.once_us;
  const auto add = [&](const FusionPlan& part, double times) {
    const std::vector<bool> once = once_kernels(part);
    for (std::size_t k = 0; k < part.kernels.size(); ++k)
      if (const KernelPlan& kernel = part.kernels[k]; !once[k] && (!kernel.code || !kernel.code->product))
        row.memory_us += times * kernel.predicted_us;
  };
  add(plan, 1);
  const std::vector<std::int64_t> runs = runs_of_computations(planned_graph(graph, plan), plan);
  for (std::size_t c = 0; c < runs.size(); ++c) add(plan.computations[c].plan, static_cast<double>(runs[c]));
  if (plan.peer == nullptr) return row;
  row.method = times_method(plan);
  row.dump = plan.peer->dump;
  return row;
}

PlanOptions options_for(const Planner& row, const PlanOptions& options) {
  PlanOptions own{
      .record_decisions = options.record_decisions, .weights = options.weights, .tf32 = options.tf32};
  for (const auto& [knob, value] : options.knobs)
    if (std::find(row.knobs.begin(), row.knobs.end(), knob) != row.knobs.end()) own.knobs[knob] = value;
  if (honours(row, options.edits)) own.edits = options.edits;
  if (row.takes_library) own.library = options.library;
  return own;
}

std::vector<CompareRow> compare(const Graph& graph, const Device& device,
                                const std::vector<std::string>& planners, const PlanOptions& options) {
  require_honoured(planners, options);
  std::vector<CompareRow> rows;
  for (const std::string& name : planners) {
    const Planner& row = planner(name);
    const PlanOptions own = options_for(row, options);
    const auto start = std::chrono::steady_clock::now();
    const FusionPlan plan = make_plan(graph, device, name, own);
    const double plan_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    rows.push_back(row_of(graph, plan, plan_ms));
    rows.back().planner = name;
  }
  return rows;
}

}  // namespace stitchwork
