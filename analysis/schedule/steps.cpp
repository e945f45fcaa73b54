#include "analysis/schedule/steps.h"

#include <algorithm>

namespace stitchwork {

std::set<NodeId> shared_reads(const Computation& computation, std::vector<NodeId> ops,
                              const std::function<Had(NodeId)>& had) {
  std::set<NodeId> reads, seen;
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

}  // namespace stitchwork
