#include "core/substitute/rewritten_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/base/suggest.h"
#include "core/graph/rewrite.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork::rewriting {

const Computation* RewrittenGraph::model_computation(const std::string& name) const {
  const ComputationId id = computation_named(*model, name);
  return id < 0 ? nullptr : &model->computation(id);
}

RewrittenGraph unchanged(Graph model) {
  RewrittenGraph result{model, {}, std::make_shared<const Graph>(std::move(model)), {}};
  for (const Computation& computation : result.graph.computations) {
    Origins& origins = result.origins.emplace_back();
    origins.now = no_replacement(computation);
    for (const NodeId id : origins.now) origins.of.push_back({id});
  }
  return result;
}

std::string sha256_of(const RewrittenGraph& rewritten) {
  std::string text;
  for (const ComputationId id : running_computations(rewritten.graph)) {
    const Computation& computation = rewritten.graph.computation(id);
    const Computation* model = rewritten.model_computation(computation.name);
    text += computation.name + "\n";
    for (const Node& node : computation.nodes) {
      const bool known = node.op == Op::kConstant && model != nullptr && model->find(node.name) != kNoNode;
      text += (known ? node.name : to_text(rewritten.graph, computation, node)) + "\n";
    }
  }
  return sha256_hex(text);
}

ComputationId computation_named(const Graph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.computations, name, &Computation::name);
  return found == graph.computations.end()
             ? -1
             : static_cast<ComputationId>(std::distance(graph.computations.begin(), found));
}

std::string computation_of(const Graph& graph, const std::string& op) {
  std::vector<std::string_view> names;
  std::vector<ComputationId> ids = running_computations(graph);
  std::ranges::reverse(ids);  // the entry first
  for (const ComputationId id : ids)
    for (const Node& node : graph.computation(id).nodes) {
      if (node.name == op) return graph.computation(id).name;
      names.push_back(node.name);
    }
  const std::string_view near = closest(op, names);
  throw Error(graph.source, 0, 0, fmt::format("no op is called '{}'", op),
              near.empty() ? "`stitchwork completion --ops MODEL` lists them"
                           : fmt::format("did you mean {}?", near));
}

std::vector<ComputationId> running_computations(const Graph& graph) {
  std::vector<bool> runs(graph.computations.size(), false);
  runs[static_cast<std::size_t>(graph.entry)] = true;
  std::vector<ComputationId> result;
  // Callees precede callers.
  for (auto c = static_cast<ComputationId>(graph.computations.size()); c-- > 0;) {
    if (!runs[static_cast<std::size_t>(c)]) continue;
    result.insert(result.begin(), c);
    for (const Node& node : graph.computation(c).nodes)
      if (node.op == Op::kWhile || node.op == Op::kConditional || node.op == Op::kCall)
        for (const ComputationId callee : node.attrs.computations)
          runs[static_cast<std::size_t>(callee)] = true;
  }
  return result;
}

}  // namespace stitchwork::rewriting
