// Whatever the planners make of a graph computes what the graph says.
#pragma once

#include "tests/codegen/harness.h"

namespace stitchwork::testing {

inline void expect_planned_correct(const Graph& graph) {
  for (const Planner& planner : planners()) {
    SCOPED_TRACE(planner.name);
    expect_correct(graph, make_plan(graph, device("v100"), planner.name));
  }
}

}  // namespace stitchwork::testing
