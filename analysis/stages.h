// Which ops of a phase wait for results of others in shared memory.
#pragma once

#include <map>

#include "analysis/plan.h"

namespace stitchwork {

/// How many times what an op of a phase is made from waits in shared memory for other threads.
class Stages {
 public:
  Stages(const Computation& computation, const KernelPlan& kernel, int level)
      : computation_(computation), kernel_(kernel), level_(level) {}

  int of(NodeId op);

  /// Whether `op` is made from `on`, and not from what is in shared memory alone.
  bool reads(NodeId op, NodeId on) const;

 private:
  bool is_here(NodeId op) const;
  bool is_shared(NodeId op) const;

  const Computation& computation_;
  const KernelPlan& kernel_;
  int level_;
  std::map<NodeId, int> known_;
};

}  // namespace stitchwork
