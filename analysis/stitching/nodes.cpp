#include "analysis/stitching/nodes.h"

#include <algorithm>

#include "analysis/stitching/equal_ops.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork::astitch {
namespace {

bool is_transparent(const Node& node, PlanRole role) {
  switch (node.op) {
    case Op::kBroadcast:
    case Op::kSlice:
    case Op::kIota:
      return role == PlanRole::kMemory;
    case Op::kReshape:
    case Op::kBitcast:
      return true;
    default:
      return false;
  }
}

/// A generated op whose operands are not all index maps, or a reduction generated code cannot combine.
bool is_isolated(const Graph& graph, const Node& node, const std::vector<Edge>& edges) {
  if (node.shape.is_tuple) return true;
  const OpClass cls = def(node.op).cls;
  if (cls == OpClass::kReduce) {
    return node.operands.size() != 2 || !simple_reducer(graph, applied(node)).has_value();
  }
  if (cls == OpClass::kScatter || cls == OpClass::kSort) return true;
  return std::any_of(edges.begin(), edges.end(), [](const Edge& edge) { return !edge.map.has_value(); });
}

std::int64_t edge_replication(const IndexMap& map, std::int64_t reader_elements, const Shape& operand) {
  const std::int64_t elements = operand.elements_count();
  if (elements <= 0 || dependency(map, operand.dims) == Dependency::kOneToOne) return 1;
  std::int64_t reads = reader_elements;
  for (const std::int64_t extent : map.symbols) reads *= extent;
  return std::max<std::int64_t>(1, reads / elements);
}

}  // namespace

Nodes node_facts(const Graph& graph, const Products& products) {
  const Computation& computation = graph.entry_computation();
  Nodes nodes{&graph, &computation, std::vector<NodeFacts>(computation.nodes.size())};
  const auto users = computation.users();
  for (const Node& node : computation.nodes) {
    NodeFacts& facts = nodes.facts[static_cast<std::size_t>(node.id)];
    const bool product = contains_sorted(products.ops, node.id);
    SW_CHECK(!product || is_product(node), "{} is no product", node.name);
    facts.role = product ? PlanRole::kMemory : plan_role(node);
    facts.immediate = is_immediate(computation, node.id);
    facts.transparent = is_transparent(node, facts.role);
    facts.elements = node.shape.is_tuple ? 0 : node.shape.elements_count();
    facts.users = users[static_cast<std::size_t>(node.id)];
    if (facts.role != PlanRole::kMemory && !facts.transparent) continue;
    for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) {
      Edge edge{operand_map(computation, node.id, i), 1};
      if (edge.map) {
        const Shape& operand = computation.node(node.operands[static_cast<std::size_t>(i)]).shape;
        edge.replication = edge_replication(*edge.map, facts.elements, operand);
      }
      facts.edges.push_back(std::move(edge));
    }
    facts.isolated = facts.role == PlanRole::kMemory && is_isolated(graph, node, facts.edges);
    // A reduction of one element (the trailing 1 of a gather's index, say) is an element-wise op.
    const bool reduces = def(node.op).cls == OpClass::kReduce && facts.role == PlanRole::kMemory &&
                         !facts.isolated &&
                         facts.elements != computation.node(node.operands[0]).shape.elements_count();
    const bool cooperates = product && reduction_size(computation, node.id).cols > products.most_serial;
    if (cooperates || reduces) {
      facts.reduction = reduction_shape(computation, node.id);
    }
  }
  for (auto it = computation.nodes.rbegin(); it != computation.nodes.rend(); ++it) {
    NodeFacts& facts = nodes.facts[static_cast<std::size_t>(it->id)];
    facts.buffer_needed = facts.buffer_needed || it->id == computation.root;
    const bool reads_buffers = facts.role == PlanRole::kLibrary || facts.role == PlanRole::kOpaque ||
                               facts.isolated || (facts.role == PlanRole::kAlias && facts.buffer_needed) ||
                               (facts.role == PlanRole::kAlias && !facts.transparent);
    if (reads_buffers) {
      for (const NodeId operand : it->operands) {
        nodes.facts[static_cast<std::size_t>(operand)].buffer_needed = true;
      }
    }
    if (facts.role == PlanRole::kMemory) {
      facts.member = facts.buffer_needed || !(facts.transparent || facts.immediate);
    }
  }
  const std::vector<int> codes = equal_ops(nodes);
  for (std::size_t id = 0; id < codes.size(); ++id) nodes.facts[id].code = codes[id];
  return nodes;
}

bool is_step(const NodeFacts& facts) {
  return facts.member || facts.role == PlanRole::kLibrary || facts.role == PlanRole::kOpaque ||
         (facts.role == PlanRole::kAlias && !facts.transparent);
}

std::vector<NodeId> producers(const Nodes& nodes, NodeId id) {
  std::vector<NodeId> result;
  std::vector<NodeId> stack(nodes.node(id).operands);
  while (!stack.empty()) {
    const NodeId operand = stack.back();
    stack.pop_back();
    const NodeFacts& facts = nodes[operand];
    if (facts.member && !(facts.transparent && !nodes[id].isolated && nodes[id].role == PlanRole::kMemory)) {
      result.push_back(operand);
    } else if (facts.transparent) {
      const auto& operands = nodes.node(operand).operands;
      stack.insert(stack.end(), operands.begin(), operands.end());
    } else if (is_step(facts)) {
      result.push_back(operand);
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::int64_t instructions(const Nodes& nodes, NodeId id) {
  if (nodes[id].transparent || nodes[id].immediate) return 0;
  return std::max<std::int64_t>(0, def(nodes.node(id).op).instructions);
}

}  // namespace stitchwork::astitch
