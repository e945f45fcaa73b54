// Shared by the tests of the AStitch passes.
#pragma once

#include <string>
#include <vector>

#include "analysis/stitching/finalize.h"
#include "core/hlo/hlo_text.h"
#include "tests/support/graphs.h"

namespace stitchwork::astitch {

inline Graph parse(const std::string& entry) {
  return parse_hlo(
      "HloModule t\n"
      "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n" +
          entry,
      "test.hlo");
}

using stitchwork::testing::dataset;

inline std::vector<std::string> names(const Nodes& nodes, const std::vector<NodeId>& ids) {
  std::vector<std::string> result;
  for (const NodeId id : ids) result.push_back(nodes.name(id));
  return result;
}

/// The passes up to finalization over the one stitch op of a graph.
struct Passes {
  explicit Passes(const Graph& graph, MappingLimits limits = {1024, 160, true, true}, bool merge = true,
                  bool proactive = true)
      : nodes(node_facts(graph)), recorder(true) {
    scope = find_scope(nodes, 512, recorder);
    body = make_body(nodes, scope.stitch_ops.at(0));
    candidates = find_candidates(body, {}, recorder);
    groups = form_groups(body, candidates, limits, merge, recorder);
    if (proactive) groups = adapt_groups(body, candidates, std::move(groups), merge, 80, recorder);
    finalization = finalize(body, candidates, groups, {}, recorder);
  }
  Scheme scheme(std::string_view name) const {
    return finalization.schemes.at(nodes.computation->find(name));
  }
  int level(std::string_view name) const { return finalization.levels.at(nodes.computation->find(name)); }

  Nodes nodes;
  Recorder recorder;
  Scope scope;
  Body body;
  Candidates candidates;
  std::vector<OpGroup> groups;
  Finalization finalization;
};

}  // namespace stitchwork::astitch
