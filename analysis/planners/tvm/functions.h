// What the groups of the partition become on a device: library calls and kernels (docs/planners/tvm.md).
#pragma once

#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/plan/recorder.h"
#include "analysis/planners/tvm/partition.h"

namespace stitchwork::tvm {

/// A kernel in the making: the generated ops of a group, and the one whose values it stores.
struct Function {
  std::vector<NodeId> ops;  ///< ascending
  NodeId root = kNoNode;
  bool inlinable = false;  ///< a loop over its result without reductions of any kind inside
};

/// The kernels of the partition, ascending by root. A group without generated ops (a call, a copy, names
/// only) makes none; the epilogue of a library call is a kernel of its own.
std::vector<Function> functions(const ForwardGraph& graph, const std::vector<FusedGroup>& groups,
                                Recorder& recorder);

/// Those that TVM makes of the computation.
std::vector<Function> functions(const Computation& computation, Recorder& recorder);

/// The kernel of a function: the natural loop of its root, with all else inside.
KernelPlan kernel_of(const Computation& computation, const Function& function);

/// duplicate_cheap: a function that only other functions read is computed in each of them, if their copies
/// read no more bytes than storing its result once and reading it back would move, and their loops hold no
/// more nodes than TVM's functions and compute no op under more than kMostMaps index maps.
std::vector<Function> duplicate_cheap(const Computation& computation, std::vector<Function> functions,
                                      Recorder& recorder);

}  // namespace stitchwork::tvm
