// From computations as they were read to a graph: what they call, their order, their shapes.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"
#include "core/hlo/hlo_attributes.h"
#include "core/hlo/hlo_lexer.h"

namespace stitchwork {

/// Where an instruction stands in the text, and what it calls.
struct NodeText {
  std::size_t position = 0;
  std::vector<CalleeName> callees;
};

struct ComputationText {
  std::size_t position = 0;
  std::vector<NodeText> nodes;  ///< parallel to Computation::nodes
};

using ComputationIds = std::unordered_map<std::string_view, ComputationId>;

/// Resolves computation names and sorts the computations, callees first, else in the order of the text; then
/// checks all shapes. `texts` are parallel to the graph's computations. Fails as the lexer does where a name
/// is unknown, a computation calls itself or a shape is wrong.
void link_computations(HloLexer& lexer, const ComputationIds& ids, std::vector<ComputationText> texts,
                       Graph& graph);

}  // namespace stitchwork
