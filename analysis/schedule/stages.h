// Which ops of a phase wait for results of others in shared memory.
#pragma once

#include <map>
#include <unordered_map>
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
  /// What these ops are made from, and not from what is in shared memory alone, themselves among it: of each
  /// value the least stage of one of them that is.
  std::unordered_map<NodeId, int> first_reads(const std::vector<NodeId>& ops);
  /// Values in shared memory of this phase that `op` is or is made from without passing through others of
  /// that kind. Ascending.
  std::vector<NodeId> shared_reads(NodeId op) const;
  /// Whether the phase computes `op`: it is of the kernel, and no earlier phase left it in memory. What later
  /// phases leave there is computed by itself where it is read before.
  bool is_here(NodeId op) const;

 private:
  bool is_shared(NodeId op) const;

  const Computation& computation_;
  const KernelPlan& kernel_;
  int level_;
  std::vector<NodeId> made_;
  std::map<NodeId, int> known_;
};

}  // namespace stitchwork
