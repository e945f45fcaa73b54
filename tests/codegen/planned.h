// Whatever the planners make of a graph computes what the graph says.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "tests/codegen/harness.h"

namespace stitchwork::testing {

/// Under every planner, and under every thread mapping of those that have several.
inline void expect_planned_correct(const Graph& graph) {
  for (const Planner& planner : planners_for(graph)) {
    const bool maps = std::find(planner.knobs.begin(), planner.knobs.end(), "mapping") != planner.knobs.end();
    for (const char* mapping : {"paper", "tuned"}) {
      PlanOptions options;
      if (maps) options.knobs["mapping"] = mapping;
      SCOPED_TRACE(fmt::format("{} {}", planner.name, mapping));
      expect_correct(graph, make_plan(graph, device("v100"), planner.name, options));
      if (!maps) break;
    }
  }
}

}  // namespace stitchwork::testing
