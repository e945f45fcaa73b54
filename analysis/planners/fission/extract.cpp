#include "analysis/planners/fission/extract.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/facts/once.h"
#include "analysis/planners/tvm/functions.h"
#include "core/base/sorted.h"

namespace stitchwork::fission {
namespace {

/// Walks from what a kernel computes to what it reads.
class IndexMaps {
 public:
  IndexMaps(const astitch::Nodes& nodes, const std::vector<NodeId>& primitives)
      : nodes_(nodes), inside_(primitives.begin(), primitives.end()) {
    for (const NodeId primitive : primitives)
      for (const NodeId operand : nodes.node(primitive).operands) take(operand);
  }

  std::vector<NodeId> ops() const { return {inside_.begin(), inside_.end()}; }

 private:
  /// Whether the kernel computes it: an array in memory under another name is read there.
  bool take(NodeId id) {
    if (inside_.contains(id)) return true;
    if (outside_.contains(id) || nodes_[id].immediate || !nodes_[id].transparent) return false;
    bool computed = nodes_[id].role == PlanRole::kMemory;
    for (const NodeId operand : nodes_.node(id).operands)
      if (take(operand)) computed = true;
    (computed ? inside_ : outside_).insert(id);
    return computed;
  }

  const astitch::Nodes& nodes_;
  std::set<NodeId> inside_, outside_;
};

}  // namespace

std::vector<NodeId> with_index_maps(const astitch::Nodes& nodes, const std::vector<NodeId>& primitives) {
  return IndexMaps(nodes, primitives).ops();
}

std::string weights_text(const Graph& graph) {
  std::string text;
  const Computation& entry = graph.entry_computation();
  for (const NodeId id : entry.parameters)
    if (entry.node(id).attrs.weight) text += " weight " + entry.node(id).name;
  return text;
}

Graph extract(const Graph& graph, const std::vector<NodeId>& ops, const std::vector<NodeId>& outputs) {
  const Computation& computation = graph.entry_computation();
  std::set<NodeId> needed(ops.begin(), ops.end());
  std::vector<NodeId> open = ops;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!contains_sorted(ops, id) && !is_immediate(computation, id)) continue;  // a parameter
    for (const NodeId operand : computation.node(id).operands)
      if (needed.insert(operand).second) open.push_back(operand);
  }
  Graph part;
  part.name = graph.name;
  ComputationBuilder builder("part");
  std::map<NodeId, NodeId> place;
  std::map<ComputationId, ComputationId> called;
  std::int64_t parameters = 0;
  const std::vector<bool> once = once_values(computation);
  for (const NodeId id : needed) {
    Node node = computation.node(id);
    if (contains_sorted(ops, id) || is_immediate(computation, id)) {
      for (NodeId& operand : node.operands) operand = place.at(operand);
      for (ComputationId& callee : node.attrs.computations) {
        const auto [at, added] = called.try_emplace(callee, static_cast<ComputationId>(called.size()));
        if (added) part.computations.push_back(graph.computation(callee));
        callee = at->second;
      }
    } else {
      node.op = Op::kParameter;
      node.operands.clear();
      node.attrs = {};
      node.attrs.parameter_number = parameters++;
      node.attrs.weight = !once.empty() && once[static_cast<std::size_t>(id)];
    }
    place[id] = builder.add(std::move(node));
  }
  NodeId root = place.at(outputs.front());
  if (outputs.size() > 1) {
    Node tuple;
    tuple.op = Op::kTuple;
    std::vector<Shape> elements;
    for (const NodeId output : outputs) {
      tuple.operands.push_back(place.at(output));
      elements.push_back(computation.node(output).shape);
    }
    tuple.shape = Shape::tuple(std::move(elements));
    root = builder.add(std::move(tuple));
  }
  part.computations.push_back(std::move(builder).finish(root));
  part.entry = static_cast<ComputationId>(part.computations.size()) - 1;
  return part;
}

bool is_one_function(const Graph& module) {
  Recorder silent(false);
  return tvm::functions(module.entry_computation(), silent).size() == 1;
}

}  // namespace stitchwork::fission
