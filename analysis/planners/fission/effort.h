// The knob `effort`: how much the searches look at. Counts, never seconds, so that a plan does not depend on
// the machine.
#pragma once

#include <cstddef>
#include <string_view>

#include "analysis/planners/fission/candidates.h"
#include "analysis/planners/fission/program.h"
#include "analysis/planners/fission/search.h"

namespace stitchwork::fission {

struct Effort {
  SearchLimits search;
  bool sketches = true;  ///< rewritings are looked at by XLA's kernels first; else all are priced
  /// A choice, not measured: accepted moves may make room for others, seldom twice.
  int rounds = 3;
  /// A choice, not measured: each is a planning of the model. Groups of regions alike whose moves are priced
  /// in the whole model, by what they gain by themselves.
  std::size_t groups = 8;
  CandidateLimits candidates;
  SolverLimits solver;
};

/// Of "quick", "normal" or "full". Choices, not measured: quick looks at about an eighth of what normal does,
/// full at two to eight times as much, and at what stitched kernels alone gain by.
inline Effort effort(std::string_view name) {
  Effort result;
  if (name == "quick") {
    result.search.graphs = 8;
    result.search.priced = 1;
    result.rounds = 1;
    result.groups = 2;
    result.candidates.ops = 8;
    result.candidates.window = 500;
    result.solver.states = 600;
    result.solver.nodes = 0;
  } else if (name == "full") {
    result.sketches = false;
    result.search.graphs = 64;
    result.search.priced = 16;
    result.rounds = 4;
    result.groups = 32;
    result.candidates.ops = 32;
    result.candidates.window = 32'000;
    result.solver.states = 40'000;
    result.solver.nodes = 200;
  }
  return result;
}

}  // namespace stitchwork::fission
