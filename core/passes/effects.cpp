#include <fmt/format.h>

#include "core/graph/window.h"
#include "core/passes/passes.h"

namespace stitchwork {

bool only_acts(const Node& node) {
  const bool nothing = node.shape.is_tuple ? node.shape.elements.empty() : node.shape.dtype == DType::kToken;
  return node.op == Op::kCustomCall && nothing;
}

std::vector<std::string> left_out_effects(const Graph& graph) {
  std::vector<std::string> effects;
  for (const Computation& computation : graph.computations)
    for (const Node& node : computation.nodes)
      if (only_acts(node)) effects.push_back(fmt::format("{} ({})", node.name, custom_call_target(node)));
  return effects;
}

}  // namespace stitchwork
