#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/verify/verify_internal.h"

namespace stitchwork::verification {
namespace {

std::string op_name(const Computation& computation, NodeId op) {
  return op >= 0 && op < computation.size() ? computation.node(op).name : fmt::format("op number {}", op);
}

bool known(const Computation& computation, const std::vector<NodeId>& ops) {
  return std::all_of(ops.begin(), ops.end(), [&](NodeId op) { return op >= 0 && op < computation.size(); });
}

void check_ascending(const Computation& computation, const KernelPlan& kernel, const std::vector<NodeId>& ops,
                     std::string_view what, Report& report) {
  const auto bad = std::adjacent_find(ops.begin(), ops.end(), std::greater_equal<>());
  if (bad != ops.end())
    report.add("op-order", "kernel {}: {} lists {} before {}, which is not topological order", kernel.id,
               what, op_name(computation, *bad), op_name(computation, *(bad + 1)));
}

void check_kinds(const Computation& computation, const KernelPlan& kernel, Report& report) {
  const std::unordered_set<NodeId> inside(kernel.ops.begin(), kernel.ops.end());
  for (NodeId op : kernel.ops) {
    const Node& node = computation.node(op);
    if (!is_for_kernels(node))
      report.add("op-kind", "kernel {}: {} is a {}, which generated code cannot compute", kernel.id,
                 node.name, def(node.op).name);
    for (NodeId operand : node.operands) {
      if (inside.contains(operand) || plan_role(computation.node(operand)) != PlanRole::kAlias) continue;
      if (is_immediate(computation, operand)) continue;  // read from no buffer
      const NodeId owner = buffer_of(computation, operand);
      if (inside.contains(owner))
        report.add(
            "alias",
            "kernel {}: {} reads {}, another name of {}, which the kernel computes; list {} in the kernel",
            kernel.id, node.name, op_name(computation, operand), op_name(computation, owner),
            op_name(computation, operand));
    }
  }
}

void check_groups(const Computation& computation, const KernelPlan& kernel, Report& report) {
  const std::unordered_set<NodeId> inside(kernel.ops.begin(), kernel.ops.end());
  std::unordered_set<NodeId> grouped;
  std::unordered_map<NodeId, int> owners;
  for (const Group& group : kernel.groups) {
    const std::string dominant = op_name(computation, group.dominant);
    const std::unordered_set<NodeId> members(group.ops.begin(), group.ops.end());
    check_ascending(computation, kernel, group.ops, fmt::format("group {}", dominant), report);
    check_ascending(computation, kernel, group.sub_dominants,
                    fmt::format("the sub-dominants of {}", dominant), report);
    check_ascending(computation, kernel, group.across, fmt::format("what {} reduces across rows", dominant),
                    report);
    check_ascending(computation, kernel, group.one_pass, fmt::format("what {} gathers in one pass", dominant),
                    report);
    for (NodeId op : group.ops) {
      grouped.insert(op);
      if (!inside.contains(op))
        report.add("group", "kernel {}: group {} lists {}, which is not an op of the kernel", kernel.id,
                   dominant, op_name(computation, op));
    }
    if (!known(computation, group.one_pass))
      report.add("op", "kernel {}: group {} gathers an op the model does not have in one pass", kernel.id,
                 dominant);
    if (!known(computation, group.across))
      report.add("op", "kernel {}: group {} reduces an op the model does not have across its rows", kernel.id,
                 dominant);
    std::vector<NodeId> roots = group.sub_dominants;
    roots.push_back(group.dominant);
    for (NodeId op : roots) {
      if (!members.contains(op))
        report.add("group", "kernel {}: {} leads group {} but is not listed in its ops", kernel.id,
                   op_name(computation, op), dominant);
      if (op < 0 || op >= computation.size()) continue;
      if (++owners[op] == 2)
        report.add("group", "kernel {}: {} is materialised by two groups", kernel.id,
                   op_name(computation, op));
      if (plan_role(computation.node(op)) == PlanRole::kAlias)
        report.add("alias", "kernel {}: {} only renames {}; materialise that", kernel.id,
                   op_name(computation, op), op_name(computation, buffer_of(computation, op)));
    }
    if (group.lane < 0 || group.deal.first_block < 0)
      report.add("group", "kernel {}: group {} has lane {} from block {}", kernel.id, dominant, group.lane,
                 group.deal.first_block);
  }
  for (NodeId op : kernel.ops)
    if (!grouped.contains(op))
      report.add("op-in-no-group", "kernel {}: {} is in no group", kernel.id, op_name(computation, op));
}

void check_annotations(const Computation& computation, const KernelPlan& kernel, Report& report) {
  const std::unordered_set<NodeId> inside(kernel.ops.begin(), kernel.ops.end());
  for (NodeId op : kernel.ops) {
    if (!kernel.schemes.contains(op))
      report.add("scheme", "kernel {}: {} has no scheme", kernel.id, op_name(computation, op));
    const auto level = kernel.levels.find(op);
    if (level == kernel.levels.end())
      report.add("level", "kernel {}: {} has no level", kernel.id, op_name(computation, op));
    else if (level->second < 0)
      report.add("level", "kernel {}: {} has level {}", kernel.id, op_name(computation, op), level->second);
  }
  for (const auto& [op, scheme] : kernel.schemes)
    if (!inside.contains(op))
      report.add("scheme", "kernel {}: a scheme ({}) is given for {}, which is not an op of the kernel",
                 kernel.id, name(scheme), op_name(computation, op));
  for (const auto& [op, level] : kernel.levels)
    if (!inside.contains(op))
      report.add("level", "kernel {}: a level ({}) is given for {}, which is not an op of the kernel",
                 kernel.id, level, op_name(computation, op));
  const std::vector<NodeId> made = materialised(kernel);
  for (const Residence& r : kernel.resident)
    if (r.op < 0 || r.op >= computation.size() || r.group < 0 || r.group >= computation.size() || r.level < 0)
      report.add("resident", "kernel {}: {} is kept by the group of {} from level {}", kernel.id,
                 op_name(computation, r.op), op_name(computation, r.group), r.level);
  for (const Tile& tile : kernel.tiles)
    if (tile.op < 0 || tile.op >= computation.size() || tile.group < 0 || tile.group >= computation.size() ||
        tile.level < 0)
      report.add("tile", "kernel {}: a tile of {} for the group of {} in level {}", kernel.id,
                 op_name(computation, tile.op), op_name(computation, tile.group), tile.level);
  for (const auto& [op, scheme] : kernel.in_phase) {
    const auto all = kernel.schemes.find(op);
    const bool stored =
        all != kernel.schemes.end() && (all->second == Scheme::kGlobal || all->second == Scheme::kResident);
    if (!stored || (scheme != Scheme::kRegional && scheme != Scheme::kLocal))
      report.add("scheme", "kernel {}: {} is {} in its phase, which only a global or resident value can be",
                 kernel.id, op_name(computation, op), name(scheme));
  }
  if (kernel.outputs.empty()) report.add("output", "kernel {}: has no outputs", kernel.id);
  for (NodeId op : kernel.outputs)
    if (!std::binary_search(made.begin(), made.end(), op))
      report.add("output", "kernel {}: output {} is neither dominant nor sub-dominant of a group", kernel.id,
                 op_name(computation, op));
  check_ascending(computation, kernel, kernel.outputs, "its outputs", report);
}

}  // namespace

void check_structure(const Computation& computation, const KernelPlan& kernel, Report& report) {
  if (kernel.ops.empty() || kernel.groups.empty()) {
    report.add("empty", "kernel {} has no {}", kernel.id, kernel.ops.empty() ? "ops" : "groups");
    return;
  }
  if (!known(computation, kernel.ops)) {
    report.add("op", "kernel {} lists an op the model does not have", kernel.id);
    return;
  }
  check_ascending(computation, kernel, kernel.ops, "its ops", report);
  check_kinds(computation, kernel, report);
  check_groups(computation, kernel, report);
  check_annotations(computation, kernel, report);
}

}  // namespace stitchwork::verification
