// TVM's GraphPartitioner: in three phases every op is fused with all ops up to where its paths meet again, if
// the kinds on these paths allow (docs/planners/tvm.md).
#pragma once

#include <string>
#include <vector>

#include "analysis/plan/recorder.h"
#include "analysis/planners/tvm/forward_graph.h"

namespace stitchwork::tvm {

/// Nodes of one function at most (TVM's max_fuse_depth on GPUs).
inline constexpr int kMaxNodes = 256;

/// Ops that become one function, by node of the forward graph; `root` computes its result.
struct FusedGroup {
  int root = -1;
  std::vector<int> nodes;  ///< ascending
};

/// Groups, ascending by root. A node is in exactly one.
std::vector<FusedGroup> partition(const ForwardGraph& graph, const std::vector<PostDominator>& dominators,
                                  Recorder& recorder);

std::string to_text(const ForwardGraph& graph, const std::vector<FusedGroup>& groups);

}  // namespace stitchwork::tvm
