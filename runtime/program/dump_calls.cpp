#include "runtime/program/dump_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/at.h"
#include "core/graph/rewrite.h"
#include "core/passes/passes.h"
#include "core/substitute/rewritten_graph.h"

namespace stitchwork {
namespace {

class CallWriter {
 public:
  CallWriter(const Computation& before, const Script& script) : before_(before) {
    for (const ScriptStep& step : script.steps)
      if (step.kind == ScriptStepKind::kCall && step.computes != nullptr &&
          step.computes->computations.size() == 1)
        computes_.emplace(step.instruction, step.computes.get());
    for (const Node& node : before_.nodes) taken_.insert(node.name);
  }

  Computation run(std::map<std::string, std::vector<std::string>>& of) {
    Computation result;
    result.name = before_.name;
    result.attributes = before_.attributes;
    const auto users = before_.users();
    std::vector<NodeId> first;
    for (const Node& node : before_.nodes) {
      first.push_back(static_cast<NodeId>(nodes_.size()));
      const auto known = computes_.find(node.name);
      if (node.op == Op::kGetTupleElement && results_.contains(node.operands[0])) {
        place_.push_back(results_.at(node.operands[0])[static_cast<std::size_t>(node.attrs.tuple_index)]);
      } else if (node.op == Op::kCustomCall && known != computes_.end() &&
                 fits(node, *known->second, users[at(node.id)])) {
        place_.push_back(write(node, known->second->entry_computation(), of[node.name]));
      } else {
        Node copy = node;
        for (NodeId& operand : copy.operands) operand = place_[at(operand)];
        place_.push_back(add(std::move(copy)));
      }
    }
    first.push_back(static_cast<NodeId>(nodes_.size()));
    for (const NodeId parameter : before_.parameters) result.parameters.push_back(place_[at(parameter)]);
    result.root = place_[at(before_.root)];
    result.imported = moved(before_.imported, first, place_);
    result.nodes = std::move(nodes_);
    return result;
  }

 private:
  static std::vector<Shape> arrays(const Shape& shape) {
    return shape.is_tuple ? shape.elements : std::vector<Shape>{shape};
  }

  /// Operands and results are the call's, and all that is read of it is among them.
  bool fits(const Node& call, const Graph& computes, const std::vector<NodeId>& users) const {
    const Computation& entry = computes.entry_computation();
    if (entry.parameters.size() > call.operands.size()) return false;
    for (std::size_t i = 0; i < entry.parameters.size(); ++i)
      if (!holds(before_.node(call.operands[i]).shape, entry.node(entry.parameters[i]).shape)) return false;
    const std::vector<Shape> given = arrays(call.shape), known = arrays(entry.node(entry.root).shape);
    if (known.size() > given.size()) return false;
    for (std::size_t i = 0; i < known.size(); ++i)
      if (!holds(given[i], known[i])) return false;
    if (!call.shape.is_tuple) return true;
    return call.id != before_.root && std::ranges::all_of(users, [&](NodeId user) {
             const Node& reader = before_.node(user);
             return reader.op == Op::kGetTupleElement &&
                    reader.attrs.tuple_index < static_cast<std::int64_t>(known.size());
           });
  }

  static bool holds(const Shape& logical, const Shape& physical) {
    return !logical.is_tuple && !physical.is_tuple && logical.dtype == physical.dtype &&
           logical.elements_count() == physical.elements_count();
  }

  NodeId add(Node node) {
    node.id = static_cast<NodeId>(nodes_.size());
    nodes_.push_back(std::move(node));
    return nodes_.back().id;
  }

  std::string fresh(const std::string& name) {
    std::string unique = name;
    for (int i = 1; !taken_.insert(unique).second; ++i) unique = fmt::format("{}.{}", name, i);
    return unique;
  }

  NodeId reshaped(NodeId value, const std::vector<std::int64_t>& dims, const std::string& name) {
    const Shape& from = nodes_[at(value)].shape;
    if (from.dims == dims) return value;
    Node node;
    node.op = Op::kReshape;
    node.name = fresh(name + ".reshape");
    node.shape = Shape::array(from.dtype, dims);
    node.operands = {value};
    return add(std::move(node));
  }

  NodeId transposed(NodeId value, const std::vector<std::int64_t>& order, const std::string& name) {
    if (std::ranges::is_sorted(order)) return value;
    const Shape& from = nodes_[at(value)].shape;
    Node node;
    node.op = Op::kTranspose;
    node.name = fresh(name + ".transpose");
    node.shape = Shape::array(from.dtype, {});
    for (const std::int64_t dim : order) node.shape.dims.push_back(from.dims[static_cast<std::size_t>(dim)]);
    node.operands = {value};
    node.attrs.dimensions = order;
    return add(std::move(node));
  }

  /// The array as it lies in memory, row-major: what the computation of a call is written for.
  NodeId physical(NodeId value, const Shape& logical, const Shape& wanted, const std::string& name) {
    return reshaped(transposed(value, physical_order(logical), name), wanted.dims, name);
  }

  NodeId logical(NodeId value, const Shape& wanted, const std::string& name) {
    const std::vector<std::int64_t> order = physical_order(wanted);
    std::vector<std::int64_t> dims, back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      dims.push_back(wanted.dims[static_cast<std::size_t>(order[i])]);
      back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    }
    return transposed(reshaped(value, dims, name), back, name);
  }

  /// The first result; of a tuple's elements all are in results_.
  NodeId write(const Node& call, const Computation& computes, std::vector<std::string>& names) {
    std::vector<NodeId> now;
    for (const Node& node : computes.nodes) {
      if (node.op == Op::kParameter) {
        const NodeId operand = call.operands[static_cast<std::size_t>(node.attrs.parameter_number)];
        now.push_back(physical(place_[at(operand)], before_.node(operand).shape, node.shape, call.name));
        continue;
      }
      if (node.op == Op::kTuple && node.id == computes.root) break;
      Node copy = node;
      copy.name = fresh(fmt::format("{}.{}", call.name, def(node.op).name));
      copy.line = call.line;
      copy.metadata = def(node.op).cls == OpClass::kLinear ? call.metadata : Metadata{};
      for (NodeId& operand : copy.operands) operand = now[at(operand)];
      if (node.op != Op::kConstant) names.push_back(copy.name);
      now.push_back(add(std::move(copy)));
    }
    const Node& root = computes.node(computes.root);
    const std::vector<NodeId> given =
        root.op == Op::kTuple ? root.operands : std::vector<NodeId>{computes.root};
    const std::vector<Shape> wanted = arrays(call.shape);
    std::vector<NodeId> results;
    for (std::size_t i = 0; i < given.size(); ++i)
      results.push_back(logical(now[at(given[i])], wanted[i], call.name));
    const NodeId value = results.front();
    if (call.shape.is_tuple) results_.emplace(call.id, std::move(results));
    return value;
  }

  const Computation& before_;
  std::map<std::string, const Graph*> computes_;
  std::set<std::string> taken_;
  std::vector<Node> nodes_;
  std::vector<NodeId> place_;
  std::map<NodeId, std::vector<NodeId>> results_;  ///< of calls that are written out
};

}  // namespace

GraphOfCalls with_calls(const Graph& optimised, const Script& script) {
  GraphOfCalls result;
  result.graph = optimised;
  for (const ComputationId id : rewriting::running_computations(optimised))
    result.graph.computations[at(id)] = CallWriter(optimised.computation(id), script).run(result.of);
  result.graph = canonicalize(result.graph);
  for (auto& [call, names] : result.of)
    std::erase_if(names, [&](const std::string& name) {
      return std::ranges::none_of(result.graph.computations, [&](const Computation& computation) {
        return computation.find(name) != kNoNode;
      });
    });
  return result;
}

}  // namespace stitchwork
