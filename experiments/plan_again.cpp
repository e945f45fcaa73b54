#include "experiments/plan_again.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/json/json_cursor.h"
#include "analysis/json/overrides_json.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

std::vector<std::string> weights_of(const std::string& text) {
  std::vector<std::string> patterns;
  std::istringstream from(text);
  for (std::string pattern; std::getline(from, pattern, ',');) patterns.push_back(std::move(pattern));
  return patterns;
}

/// Knobs, overrides, weights and tf32 as the trial's settings have them.
PlanOptions options_of(const ReportTrial& trial) {
  constexpr std::string_view kKnob = "options.";
  PlanOptions options;
  options.record_decisions = true;
  for (const auto& [name, value] : trial.settings) {
    if (name.starts_with("limits.")) throw Error("its device had limits");
    if (name == "plan") throw Error("it ran a plan that was given as a file");
    if (name == "library") throw Error("it was planned by a performance library");
    if (name.starts_with(kKnob)) options.knobs[name.substr(kKnob.size())] = value;
    if (name == "overrides") {
      const JsonSource source{"overrides of the store", "docs/schema/override.schema.json"};
      const nlohmann::json edits = nlohmann::json::parse(value);
      options.edits = read_edits(JsonCursor(edits, "", source));
    }
    if (name == "tf32") options.tf32 = value == "true";
    if (name == "weights") options.weights = weights_of(value);
  }
  return options;
}

/// Whether the kernels that the store has of the trial are the plan's.
bool is_what_ran(const FusionPlan& plan, const ReportTrial& trial) {
  return plan.kernels.size() == trial.kernel_count &&
         std::ranges::all_of(trial.kernels, [&](const ReportKernel& ran) {
           return std::ranges::any_of(plan.kernels, [&](const KernelPlan& kernel) {
             return kernel_title(kernel) == ran.name && kernel.ops.size() == ran.ops.size() &&
                    kernel.launch.grid == ran.grid && kernel.launch.block == ran.block;
           });
         });
}

}  // namespace

std::string kernel_title(const KernelPlan& kernel) { return kernel.id + " " + kernel.name; }

FusionPlan plan_again(const Model& model, const ReportSection& section, const ReportTrial& trial) {
  if (model.graph.source_sha256 != section.model_sha256) throw Error("the model has changed since");
  if (trial.settings.contains("dump")) throw Error("a compiler's dump ran, no plan of ours");
  const auto planner = trial.settings.find("planner");  // trial.planner is what the experiment calls it
  if (planner == trial.settings.end()) throw Error("the store does not say its planner");
  FusionPlan plan = make_plan(model.graph, device(section.device), planner->second, options_of(trial));
  if (!is_what_ran(plan, trial)) throw Error("what is planned now is not what ran");
  return plan;
}

}  // namespace stitchwork
