// What a page has of a plan that is too large to be shown whole: the steps that compute a range of the
// model's ops, and what they meet. Of smaller ones it is the whole plan, so that there is one way to a page.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "analysis/explain/boundaries.h"
#include "gui/page/page.h"

namespace stitchwork::gui {

/// Of the entry, or of what a loop or branch runs. Numbers of what is not shown are -1.
struct PartExcerpt {
  std::vector<int> step;                 ///< by step of the part: its number among those shown
  std::vector<std::size_t> kernels;      ///< those shown, by their index in the part
  std::vector<int> row;                  ///< by op: its number among those shown
  std::vector<NodeId> ops;               ///< those shown, ascending
  std::vector<StepBoundary> boundaries;  ///< with a step that is shown at one end at least; steps of the part
};

struct PlanExcerpt {
  FusionPlan plan;                 ///< the whole, with the decisions about what is shown and what that meets
  FusionPlan shown;                ///< the steps and kernels that are shown; counts and times are the whole's
  std::set<std::string> closed;    ///< ids of the entry's kernels shown without their ops, which are too many
  std::vector<PartExcerpt> parts;  ///< the entry's, then by FusionPlan::computations
  nlohmann::ordered_json summary;  ///< docs/schema/page.schema.json, excerpt; null: all is shown
};

/// `range`: of the model's entry; nullopt: all. `model` as pages have it.
PlanExcerpt excerpt(const Graph& model, const FusionPlan& plan, const std::optional<OpRange>& range);

/// The steps of closed kernels without what is in them: what folds and layouts are made of.
FusionPlan closed_plan(const PlanExcerpt& excerpt);

/// "kernel k17 multiply_17", "a library call": where the whole plan's step is that is not shown.
std::string step_elsewhere(const Graph& graph, const FusionPlan& plan, int step);

}  // namespace stitchwork::gui
