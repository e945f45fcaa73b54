// Types that kernels move and do not compute with.
#pragma once

#include "core/graph/graph.h"

namespace stitchwork {

/// A value of a float of 8 bits or an integer of fewer, which kernels move as bytes. `expand`
/// (core/passes/passes.h) writes what computes with such values by ops on other types; what it leaves, sums
/// of them and sorting for example, is not computed.
bool is_moved(const Node& node);
/// Whether `node` only moves the values of the operand, which is one of those.
bool moves(const Node& node, const Node& operand);

}  // namespace stitchwork
