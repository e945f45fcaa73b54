// The library calls of a compiler's module as ops.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "runtime/program/script.h"

namespace stitchwork {

struct GraphOfCalls {
  Graph graph;                                         ///< canonical (core/passes/passes.h)
  std::map<std::string, std::vector<std::string>> of;  ///< by instruction: ops that stand in its place
};

/// `optimised`, which is canonical, with what its custom calls compute in their place, where the steps of the
/// script say it (ScriptStep::computes): a product and what follows it. Others stay calls.
GraphOfCalls with_calls(const Graph& optimised, const Script& script);

}  // namespace stitchwork
