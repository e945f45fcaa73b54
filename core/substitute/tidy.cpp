#include "core/substitute/tidy.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/substitute/editor.h"

namespace stitchwork::rewriting {
namespace {

/// One sweep over a computation: all matches are of the same graph, and true at once (rule.h).
int sweep(RewrittenGraph& graph, ComputationId id) {
  int places = 0;
  std::optional<Editor> editor;
  const View view(graph.graph, id);
  for (const Node& node : view.computation().nodes) {
    interruption_point();
    for (const Rule& rule : rules()) {
      if (!rule.tidy) break;  // they come first
      const std::optional<Match> match = rule.find(view, node.id);
      if (!match) continue;
      if (!editor) editor.emplace(graph, id);
      editor->begin(*match);
      rule.apply(*editor, *match);
      ++places;
      break;
    }
  }
  if (editor) graph = std::move(*editor).finish();
  return places;
}

}  // namespace

RewrittenGraph tidied(const RewrittenGraph& graph, int* places) {
  RewrittenGraph result = graph;
  int all = 0;
  std::vector<std::string> names;
  for (const ComputationId id : running_computations(graph.graph))
    names.push_back(graph.graph.computation(id).name);
  for (const std::string& name : names)
    for (int before = -1; before != all;) {
      before = all;
      const ComputationId id = computation_named(result.graph, name);
      if (id >= 0) all += sweep(result, id);
    }
  if (places != nullptr) *places = all;
  return result;
}

}  // namespace stitchwork::rewriting
