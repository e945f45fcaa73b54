// Which ops of a phase wait for results of others in shared memory.
#pragma once

#include <map>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// How many times what an op of a phase is made from waits in shared memory for other threads.
class Stages {
 public:
  Stages(const Computation& computation, const KernelPlan& kernel, int level);

  int of(NodeId op);

  /// Whether `op` is made from `on`, and not from what is in shared memory alone.
  bool reads(NodeId op, NodeId on) const;
  /// All that `op` reads so, itself among them. Ascending.
  std::vector<NodeId> sources(NodeId op) const;
  /// Values in shared memory of this phase that `op` is or is made from without passing through others of
  /// that kind. Ascending.
  std::vector<NodeId> shared_reads(NodeId op) const;
  /// Whether the phase computes `op`: it is of the kernel, and no earlier phase left it in memory. What later
  /// phases leave there is computed by itself where it is read before.
  bool is_here(NodeId op) const;

 private:
  /// Calls visit(id) of what `op` is made from until it returns false.
  template <typename Visit>
  void visit_sources(NodeId op, Visit visit) const;
  bool is_shared(NodeId op) const;

  const Computation& computation_;
  const KernelPlan& kernel_;
  int level_;
  std::vector<NodeId> made_;
  std::map<NodeId, int> known_;
};

}  // namespace stitchwork
