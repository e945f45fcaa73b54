// Plans as the paper makes them: tests that state its numbers ask for its thread mapping.
#pragma once

#include <algorithm>
#include <string_view>

#include "analysis/planners/planner.h"

namespace stitchwork::testing {

/// `options` with mapping=paper, where the planner has that knob.
inline PlanOptions paper(std::string_view planner_name, PlanOptions options = {}) {
  const auto knobs = planner(planner_name).knobs;
  if (std::find(knobs.begin(), knobs.end(), "mapping") != knobs.end())
    options.knobs.try_emplace("mapping", "paper");
  return options;
}

}  // namespace stitchwork::testing
