// What the view's module exports. Program and module are of one build, and the module takes everything below
// gui/ from the program that loads it: values pass as they are.
#pragma once

#include <string>
#include <vector>

#include "analysis/plan/plan.h"
#include "experiments/model.h"
#include "figures/data/module.h"

namespace stitchwork {

/// Fills `page` with the plans of the model (gui/view/plans_page.h), or `problem` with why it cannot.
using RenderView = void(const Model& model, const std::vector<FusionPlan>& plans, std::string& page,
                        ModuleProblem& problem);
inline constexpr const char* kRenderView = "stitchwork_render_view";
inline constexpr const char* kViewModule = "stitchwork_view.so";

}  // namespace stitchwork
