#include "runtime/library_calls.h"

#include <algorithm>
#include <map>

#include "analysis/facts/facts.h"
#include "analysis/plan/epilogue.h"
#include "core/base/error.h"
#include "core/evaluate/evaluator.h"

namespace stitchwork {
namespace {

/// A number in the code of what reads it, which no buffer holds.
Literal immediate(const Graph& graph, const Computation& computation, NodeId id) {
  const Node& node = computation.node(id);
  if (node.op == Op::kConstant) return evaluate_node(graph, computation, node, {});
  const Literal from = immediate(graph, computation, node.operands[0]);
  const Literal* const operand = &from;
  return evaluate_node(graph, computation, node, {&operand, 1});
}

}  // namespace

std::optional<Timed> made_call(const Computation& computation, const PlanStep& step, RunValues& values,
                               Backend& backend) {
  const std::vector<NodeId>& call = step.nodes;
  const Node& node = computation.node(call.front());
  const auto is_tuple = [&](NodeId id) { return computation.node(id).shape.is_tuple; };
  if (node.shape.is_tuple || std::any_of(node.operands.begin(), node.operands.end(), is_tuple))
    return std::nullopt;
  LibraryCall made;
  if (!step.variant.empty()) made.by = named_product(step.variant);
  for (const NodeId operand : node.operands) {
    const Node& read = computation.node(operand);
    made.operands.push_back(values.address(operand));
    if (read.attrs.placed != nullptr)
      made.operands.back() +=
          static_cast<DeviceAddress>(read.attrs.placed->offset * byte_size(read.shape.dtype));
  }
  made.result = values.address(call.back());
  if (call.size() > 1) {
    const std::optional<Epilogue> epilogue = epilogue_of(computation, call);
    SW_CHECK(epilogue.has_value(), "no library call computes {} with what follows it", node.name);
    if (epilogue->transpose != kNoNode)
      made.transposed = computation.node(epilogue->transpose).attrs.dimensions;
    if (epilogue->bias != kNoNode) made.bias = values.address(epilogue->bias);
    if (epilogue->addend != kNoNode) made.addend = values.address(epilogue->addend);
    made.relu = epilogue->relu != kNoNode;
  }
  std::optional<Timed> timed = backend.call(computation, node, made);
  const auto is_empty = [&](NodeId id) { return computation.node(id).shape.elements_count() == 0; };
  if (!timed && made.by && std::none_of(node.operands.begin(), node.operands.end(), is_empty))
    throw Error(fmt::format("{} does not make this product", step.variant),
                "leave `variant` out of the plan's step: the library makes it");
  return timed;
}

Literal computed_call(const Graph& graph, const std::vector<NodeId>& call, RunValues& held) {
  const Computation& computation = graph.entry_computation();
  std::map<NodeId, Literal> values;  // of the call's ops, and of what they read
  for (const NodeId id : call) {
    const Node& op = computation.node(id);
    std::vector<const Literal*> operands;
    for (const NodeId operand : op.operands) {
      const auto [at, fresh] = values.try_emplace(operand);
      if (fresh)
        at->second = id != call.front() && is_immediate(computation, operand)
                         ? immediate(graph, computation, operand)
                         : held.value(operand);
      operands.push_back(&at->second);
    }
    values.insert_or_assign(id, evaluate_node(graph, computation, op, operands));
  }
  return std::move(values.at(call.back()));
}

}  // namespace stitchwork
