// The steps of a kernel's task loops, from what its ops read from shared memory (AStitch section 3.2): the
// one derivation that planners, checks and schedules share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "analysis/plan/plan.h"
#include "core/base/disjoint_sets.h"
#include "core/graph/graph.h"

namespace stitchwork {

/// How what a phase computes has a value.
enum class Had : std::uint8_t {
  kStored,    ///< from memory that no step of the phase's loops writes: an input, or an earlier phase's
  kShared,    ///< from shared memory, written by an earlier step of the same task
  kComputed,  ///< computed in its place, from its operands
};

/// The values of shared memory that `ops` are read from or, where they are computed in their place, computed
/// from.
std::set<NodeId> shared_reads(const Computation& computation, std::vector<NodeId> ops,
                              const std::function<Had(NodeId)>& had);

/// Steps are separated by block barriers: an op that reads a value of shared memory comes a step after the op
/// that makes it. Groups of which one reads such a value of another run in one loop.
class TaskSteps {
 public:
  /// `op` of `group` reads these values of shared memory. To be called operands first.
  void add(NodeId op, int group, const std::set<NodeId>& reads);

  struct Made {
    int group = 0;
    int step = 0;
    int last = 0;                  ///< the last step that reads it; `step` if none does
    NodeId last_reader = kNoNode;  ///< the first op of that step which does
  };
  const std::map<NodeId, Made>& ops() const { return ops_; }
  const Made& at(NodeId op) const { return ops_.at(op); }
  /// The loop of a group: the least group of the loop.
  int loop(int group) const { return loops_.find(group); }

 private:
  std::map<NodeId, Made> ops_;
  DisjointSets<int> loops_;
};

/// The steps of everything a kernel materialises, by what each reads from shared memory in its phase.
TaskSteps task_steps(const Computation& computation, const KernelPlan& kernel);
/// The values of shared memory that `root` reads, through what its group computes for it.
std::set<NodeId> shared_reads(const Computation& computation, const KernelPlan& kernel, NodeId root);

}  // namespace stitchwork
