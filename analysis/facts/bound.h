// The fewest memory kernels any plan of a graph can have, from its dependencies alone: it shares no code with
// the planners, so that their counts can be held against it (docs/planners/quality.md).
//
// Say v precedes w if a path leads from v to w through a library call. Then no kernel computes both: the call
// reads what v feeds and must be made before w. So the ops of a chain v1, v2, ... lie in different kernels,
// also where a plan computes an op several times (compare the earliest kernels of each), and the longest
// chain is a lower bound. It is met if memory allows: kernel i computes the ops that end chains of length i.
//
// A kernel holds at most `max_ops` ops, of which those that share code count once: n ops no two of which are
// computed alike take at least ceil(n / max_ops) kernels. After the last of the kernels that compute the n
// ops which t - 1 others of a chain follow, those t - 1 still need one each: ceil(n / max_ops) + t - 1 is a
// lower bound for every t, and likewise before the first of those that t - 1 others precede.
#pragma once

#include <cstdint>
#include <string>

#include "core/graph/graph.h"

namespace stitchwork {

struct KernelBound {
  int kernels = 0;  ///< the lower bound
  int stages = 0;   ///< the longest chain: what library calls force
  int ops = 0;      ///< that some kernel must compute
  /// Of the values that kernels compute and library calls or the caller read: every plan writes them.
  std::int64_t written_bytes = 0;
};

/// Of the entry computation of a canonical graph (core/passes/passes.h canonicalize).
KernelBound kernel_bound(const Graph& graph, int max_ops = 512);

std::string to_text(const KernelBound& bound);

}  // namespace stitchwork
