#include "analysis/explain/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/json/overrides_json.h"
#include "analysis/planners/fusionstitching/library.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

WhatIf try_one(const Graph& graph, const FusionPlan& plan, Edit edit,
               const fusionstitching::PerformanceLibrary* library) {
  WhatIf trial{std::move(edit), false, 0, {}};
  PlanOptions options = as_planned(plan, false);
  options.edits.push_back(trial.edit);
  options.library = library;
  try {
    trial.predicted_us =
        make_plan(model_graph(graph, plan), device(plan.device), plan.planner, options).predicted_us;
    trial.admitted = true;
  } catch (const Error& e) {
    trial.why = e.message();
  }
  return trial;
}

}  // namespace

std::vector<WhatIf> try_overrides(const Graph& graph, const FusionPlan& plan, const Explanation& explanation,
                                  int most, const fusionstitching::PerformanceLibrary* library) {
  if (!plan.library.empty() && (library == nullptr || library->sha256 != plan.library)) return {};
  const auto row = std::find_if(planners().begin(), planners().end(),
                                [&](const Planner& p) { return p.name == plan.planner; });
  if (row == planners().end()) return {};
  const auto honours = [&](EditKind kind) {
    return std::find(row->edits.begin(), row->edits.end(), kind) != row->edits.end();
  };
  std::vector<Edit> edits;
  for (const OpPlacement& at : explanation.placements)
    if (at.scheme == Scheme::kGlobal && honours(EditKind::kScheme))
      edits.push_back({EditKind::kScheme, {explanation.op}, std::string(name(Scheme::kRegional)), 0});
  for (const Neighbour& n : explanation.neighbours)
    if (n.in_kernel && honours(EditKind::kMerge))
      edits.push_back({EditKind::kMerge, {n.producer, n.consumer}, {}, 0});
  if (edits.size() > static_cast<std::size_t>(most)) edits.resize(static_cast<std::size_t>(most));
  std::vector<WhatIf> trials;
  for (Edit& edit : edits) trials.push_back(try_one(graph, plan, std::move(edit), library));
  return trials;
}

std::string to_text(const FusionPlan& plan, const std::vector<WhatIf>& trials) {
  if (trials.empty()) return "";
  std::string text = "overrides tried\n";
  for (const WhatIf& t : trials) {
    const std::string edit = edits_to_json({t.edit})[0].dump();
    text += t.admitted ? fmt::format("  {}: admitted, predicted {:.2f} us instead of {:.2f}\n", edit,
                                     t.predicted_us, plan.predicted_us)
                       : fmt::format("  {}: refused, {}\n", edit, t.why);
  }
  return text;
}

}  // namespace stitchwork
