// What a model computes from its weights alone: the same in every run, so that it may be computed once.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// Parameters of the entry, by name, ascending, that these names and shell patterns ("params.*") mean. Throws
/// Error for one that means none.
std::vector<std::string> weights_named(const Graph& graph, const std::vector<std::string>& patterns);
/// The graph with these parameters of its entry as weights (Attributes::weight).
Graph with_weights(const Graph& graph, const std::vector<std::string>& names);

/// By node, whether its value depends on weights, constants and nothing else; no loop, branch or op that the
/// host carries out is among them. Empty where no parameter is a weight.
std::vector<bool> once_values(const Computation& computation);
/// The same where these parameters, by name, ascending, are weights, too.
std::vector<bool> once_values(const Computation& computation, const std::vector<std::string>& weights);

}  // namespace stitchwork
