// The step that passes share: a computation without some of its nodes.
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// The kept nodes of `computation`, renumbered, in their order. A use of node n becomes a use of
/// replacement[n], which must be kept and stand before the user. Parameters must be kept.
Computation rewritten(const Computation& computation, std::span<const NodeId> replacement,
                      const std::vector<bool>& keep);

/// The same kernels after a pass put new nodes for each node: those of `node` are [first[node], first[node +
/// 1]), and `place[node]` stands for its value. Kernels of which nothing is left go.
std::vector<ImportedKernel> moved(const std::vector<ImportedKernel>& kernels, std::span<const NodeId> first,
                                  std::span<const NodeId> place);

/// `graph` without its computations: what a pass fills anew.
Graph head_of(const Graph& graph);

/// replacement[n] = n.
std::vector<NodeId> no_replacement(const Computation& computation);

}  // namespace stitchwork
