// Graphs of tests: datasets by name, HLO text in place, canonical as planners see them.
#pragma once

#include <filesystem>
#include <string>

#include "analysis/plan/plan.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

namespace stitchwork::testing {

inline Graph dataset(const std::string& name) {
  const std::string folder = std::string(STITCHWORK_SOURCE_DIR) + "/";
  std::string path = "datasets/" + name + ".hlo";
  if (!std::filesystem::exists(folder + path)) path += ".gz";
  Graph graph = canonicalize(read_graph(folder + path));
  graph.source = path;  // not where this checkout lies
  return graph;
}

/// `body` is a module's text, or the instructions of its entry computation; then `sum` and `max`, reducers of
/// f32, are there.
inline Graph graph_of(const std::string& body) {
  if (body.starts_with("HloModule")) return canonicalize(parse_hlo(body, "test.hlo"));
  return canonicalize(
      parse_hlo("HloModule test\n"
                "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
                "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] maximum(a, b) }\n"
                "ENTRY main {\n" +
                    body + "\n}\n",
                "test.hlo"));
}

inline NodeId op(const Graph& graph, const std::string& name) { return graph.entry_computation().find(name); }

/// The outputs of each kernel, joined by "+".
inline std::vector<std::string> outputs(const Graph& graph, const FusionPlan& plan) {
  std::vector<std::string> names;
  for (const KernelPlan& kernel : plan.kernels) {
    std::string joined;
    for (NodeId id : kernel.outputs)
      joined += (joined.empty() ? "" : "+") + graph.entry_computation().node(id).name;
    names.push_back(joined);
  }
  return names;
}

}  // namespace stitchwork::testing
