// Planners are rows of one table: command line, sweeps, tests and GUI iterate it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/plan/options.h"
#include "analysis/plan/plan.h"
#include "analysis/plan/recorder.h"

namespace stitchwork {

/// What plans the same again: the plan's knobs, edits and steps of rewriting; its library is the caller's to
/// add.
PlanOptions as_planned(const FusionPlan& plan, bool record_decisions);

/// One knob of a planner.
struct Knob {
  std::string_view name;
  std::span<const std::string_view> values;
  std::string_view default_value;
  std::string_view meaning;  ///< a few words: what it does where it is on
};
std::span<const Knob> knobs();

struct KnobSetting {
  std::string_view name, value;
};

/// A row may be another row's function with other defaults: `presets`, which --set still overrides.
struct Planner {
  std::string_view name;
  std::string_view summary;                 ///< one line
  std::span<const std::string_view> knobs;  ///< those it honours
  std::span<const KnobSetting> presets;     ///< values of its knobs that differ from the knobs' own defaults
  std::span<const EditKind> edits;          ///< those it honours
  FusionPlan (*plan)(const Graph& graph, const Device& device, const PlanOptions& options);
  /// Whether it can plan a module; nullptr: any.
  Verdict (*takes)(const Graph& graph) = nullptr;
  bool takes_library = false;  ///< PlanOptions::library
  /// Writes the model otherwise before it is planned; nullptr: it is planned as it is.
  rewriting::RewrittenGraph (*rewrite)(const Graph& model, const Device& device, const PlanOptions& options,
                                       Recorder& recorder) = nullptr;
};

/// Whether the planner can plan the module; `make_plan` throws the reason.
Verdict takes(const Planner& row, const Graph& graph);

std::span<const Planner> planners();
/// Throws Error naming the known planners.
const Planner& planner(std::string_view name);

/// The knob's value in this row unless it is set.
std::string_view default_value(const Planner& row, std::string_view knob);

/// Every knob the planner honours with its value. Throws Error for knobs and values that it has not.
std::map<std::string, std::string> resolve_knobs(const Planner& row, const PlanOptions& options);

/// The planners that can plan the module, in the table's order.
std::vector<Planner> planners_for(const Graph& graph);

/// The one entry: plans the entry computation and all that its loops and branches run (overrides are of the
/// entry's ops), of a canonical graph (core/passes/passes.h canonicalize) with the named planner (which sees
/// every knob it honours, defaults filled in) or of what the planner rewrites it to (planned_graph), predicts
/// times (analysis/judge/cost.h), and checks the result with verify. Deterministic.
FusionPlan make_plan(const Graph& graph, const Device& device, std::string_view planner_name,
                     const PlanOptions& options = {});

// The rows.
FusionPlan plan_unfused(const Graph& graph, const Device& device, const PlanOptions& options);
FusionPlan plan_eager(const Graph& graph, const Device& device, const PlanOptions& options);
/// The model with transposes taken in by the products that they are of or go into.
rewriting::RewrittenGraph rewrite_eager(const Graph& model, const Device& device, const PlanOptions& options,
                                        Recorder& recorder);
FusionPlan plan_xla(const Graph& graph, const Device& device, const PlanOptions& options);
FusionPlan plan_xla_today(const Graph& graph, const Device& device, const PlanOptions& options);
/// The model with the reductions taken apart that XLA of today takes apart.
rewriting::RewrittenGraph rewrite_xla_today(const Graph& model, const Device& device,
                                            const PlanOptions& options, Recorder& recorder);
FusionPlan plan_tvm(const Graph& graph, const Device& device, const PlanOptions& options);
rewriting::RewrittenGraph rewrite_model(const Graph& model, const Device& device, const PlanOptions& options,
                                        Recorder& recorder);
FusionPlan plan_fission(const Graph& graph, const Device& device, const PlanOptions& options);
FusionPlan plan_korch(const Graph& graph, const Device& device, const PlanOptions& options);
FusionPlan plan_auto(const Graph& graph, const Device& device, const PlanOptions& options);
Verdict takes_imported(const Graph& graph);
FusionPlan plan_imported(const Graph& graph, const Device& device, const PlanOptions& options);
FusionPlan plan_fusionstitching(const Graph& graph, const Device& device, const PlanOptions& options);
FusionPlan plan_fusionstitching_2018(const Graph& graph, const Device& device, const PlanOptions& options);
FusionPlan plan_astitch(const Graph& graph, const Device& device, const PlanOptions& options);

}  // namespace stitchwork
