#include "analysis/schedule/steps.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/plan/assemble.h"
#include "core/base/sorted.h"

namespace stitchwork {
namespace {

/// `made`: what the kernel materialises.
std::set<NodeId> reads_of(const Computation& computation, const KernelPlan& kernel,
                          const std::vector<NodeId>& made, NodeId root) {
  const int level = kernel.levels.at(root);
  return shared_reads(computation, computation.node(root).operands, [&](NodeId op) {
    if (!kernel.schemes.contains(op)) return Had::kStored;
    const Scheme scheme = kernel.schemes.at(op);
    const bool in_place = scheme == Scheme::kLocal || scheme == Scheme::kRecomputed;
    const bool stored = contains_sorted(made, op) && !in_place;
    if (stored && kernel.levels.at(op) != level) return Had::kStored;  // an earlier phase's
    const Scheme had = scheme_in_phase(kernel, op);
    if (had == Scheme::kRegional && contains_sorted(made, op)) return Had::kShared;
    return had == Scheme::kGlobal ? Had::kStored : Had::kComputed;
  });
}

}  // namespace

std::set<NodeId> shared_reads(const Computation& computation, std::vector<NodeId> ops,
                              const std::function<Had(NodeId)>& had) {
  std::set<NodeId> reads;
  std::unordered_set<NodeId> seen;
  while (!ops.empty()) {
    const NodeId op = ops.back();
    ops.pop_back();
    if (!seen.insert(op).second) continue;
    const Had how = had(op);
    if (how == Had::kShared) reads.insert(op);
    if (how != Had::kComputed) continue;
    const std::vector<NodeId>& operands = computation.node(op).operands;
    ops.insert(ops.end(), operands.begin(), operands.end());
  }
  return reads;
}

void TaskSteps::add(NodeId op, int group, const std::set<NodeId>& reads) {
  Made made{group, 0, 0, kNoNode};
  for (const NodeId value : reads) {
    const Made& of = ops_.at(value);
    made.step = std::max(made.step, of.step + 1);
    loops_.join(group, of.group);
  }
  made.last = made.step;
  for (const NodeId value : reads) {
    Made& of = ops_.at(value);
    if (of.last_reader != kNoNode && of.last >= made.step) continue;
    of.last = made.step;
    of.last_reader = op;
  }
  ops_[op] = made;
}

TaskSteps task_steps(const Computation& computation, const KernelPlan& kernel) {
  std::map<NodeId, int> owner;
  for (std::size_t g = 0; g < kernel.groups.size(); ++g)
    for (const NodeId op : materialised(kernel.groups[g])) owner[op] = static_cast<int>(g);
  const std::vector<NodeId> made = materialised(kernel);
  TaskSteps steps;
  for (const auto& [op, group] : owner) steps.add(op, group, reads_of(computation, kernel, made, op));
  return steps;
}

std::set<NodeId> shared_reads(const Computation& computation, const KernelPlan& kernel, NodeId root) {
  return reads_of(computation, kernel, materialised(kernel), root);
}

}  // namespace stitchwork
