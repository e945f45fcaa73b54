#include "analysis/explain.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/assemble.h"
#include "analysis/facts.h"
#include "core/error.h"
#include "core/suggest.h"

namespace stitchwork {
namespace {

NodeId find_op(const Computation& computation, const std::string& op) {
  const NodeId found = computation.find(op);
  if (found != kNoNode) return found;
  std::vector<std::string_view> names;
  for (const Node& node : computation.nodes) names.push_back(node.name);
  names = nearest(op, names, 5);
  throw Error(fmt::format("no op is called '{}'", op),
              fmt::format("close names: {}", fmt::join(names, ", ")));
}

/// What an op outside kernels is.
std::string step_of(const Computation& computation, const FusionPlan& plan, const Node& node) {
  for (const PlanStep& step : plan.steps)
    if (step.kind != StepKind::kKernel && step.kind != StepKind::kMemset &&
        std::find(step.nodes.begin(), step.nodes.end(), node.id) != step.nodes.end())
      return fmt::format("{} {}", step.kind == StepKind::kLibrary ? "library call" : "copy", step.id);
  switch (plan_role(node)) {
    case PlanRole::kSource:
      return is_immediate(computation, node.id) ? "immediate in every kernel that reads it"
                                                : std::string(def(node.op).name);
    case PlanRole::kAlias: {
      const NodeId owner = buffer_of(computation, node.id);
      return owner == node.id ? "names the buffers of its operands"
                              : fmt::format("alias of {}", computation.node(owner).name);
    }
    default:
      return is_immediate(computation, node.id) ? "immediate in every kernel that reads it" : std::string();
  }
}

OpPlacement placement(const Computation& computation, const std::vector<std::vector<NodeId>>& users,
                      const KernelPlan& kernel, NodeId op) {
  OpPlacement at;
  at.kernel_id = kernel.id;
  at.kernel_name = kernel.name;
  at.role = "inlined";
  at.scheme = kernel.schemes.at(op);
  at.level = kernel.levels.at(op);
  at.output = std::find(kernel.outputs.begin(), kernel.outputs.end(), op) != kernel.outputs.end();
  const Group* own = nullptr;
  int groups = 0;
  for (const Group& group : kernel.groups) {
    if (std::find(group.ops.begin(), group.ops.end(), op) == group.ops.end()) continue;
    const bool leads = group.dominant == op;
    const bool follows =
        std::find(group.sub_dominants.begin(), group.sub_dominants.end(), op) != group.sub_dominants.end();
    if (leads || follows) {
      at.role = leads ? "dominant" : "sub-dominant";
      own = &group;
      groups = 1;
      break;
    }
    own = &group;
    ++groups;
  }
  if (groups == 1) {
    at.dominant = computation.node(own->dominant).name;
    at.mapping = to_text(own->mapping);
  }
  const auto in_kernel = [&](NodeId id) { return kernel.schemes.contains(id); };
  for (NodeId operand : computation.node(op).operands)
    if (in_kernel(operand)) at.producers.push_back(computation.node(operand).name);
  for (NodeId user : users[static_cast<std::size_t>(op)])
    if (in_kernel(user)) at.consumers.push_back(computation.node(user).name);
  return at;
}

}  // namespace

Explanation explain(const Graph& graph, const FusionPlan& plan, const std::string& op) {
  const Computation& computation = graph.entry_computation();
  const NodeId id = find_op(computation, op);
  const Node& node = computation.node(id);
  Explanation result;
  result.op = node.name;
  result.opcode = def(node.op).name;
  result.shape = to_text(node.shape);
  const auto users = computation.users();
  for (const KernelPlan& kernel : plan.kernels)
    if (std::binary_search(kernel.ops.begin(), kernel.ops.end(), id))
      result.placements.push_back(placement(computation, users, kernel, id));
  if (result.placements.empty()) result.step = step_of(computation, plan, node);
  for (const Decision& decision : plan.decisions)
    if (decision.subject == op || decision.object == op) result.decisions.push_back(decision);
  return result;
}

std::string to_text(const Explanation& explanation) {
  std::string text = fmt::format("{} = {} {}\n", explanation.op, explanation.shape, explanation.opcode);
  if (!explanation.step.empty()) text += explanation.step + "\n";
  if (explanation.placements.size() > 1)
    text += fmt::format("computed in {} kernels\n", explanation.placements.size());
  for (const OpPlacement& at : explanation.placements) {
    text += fmt::format("kernel {} {}: {}, {}, level {}{}\n", at.kernel_id, at.kernel_name, at.role,
                        name(at.scheme), at.level, at.output ? ", an output" : "");
    if (at.role != "dominant" && !at.dominant.empty()) text += fmt::format("  group of {}\n", at.dominant);
    if (!at.mapping.empty()) text += fmt::format("  {}\n", at.mapping);
    if (!at.producers.empty()) text += fmt::format("  reads {}\n", fmt::join(at.producers, ", "));
    if (!at.consumers.empty()) text += fmt::format("  read by {}\n", fmt::join(at.consumers, ", "));
  }
  if (!explanation.decisions.empty()) text += "decisions\n";
  for (const Decision& d : explanation.decisions) {
    text += fmt::format("  {}: {}", d.step, d.subject);
    if (!d.object.empty()) text += fmt::format(" -> {}", d.object);
    text += fmt::format(": {} [{}]", d.verdict.ok ? "yes" : "no", d.verdict.rule);
    if (!d.verdict.why.empty()) text += " " + d.verdict.why;
    text += "\n";
  }
  return text;
}

}  // namespace stitchwork
