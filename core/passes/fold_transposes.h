// Products that read what their transposed operands are made of.
#pragma once

#include "core/graph/graph.h"
#include "core/passes/op_trace.h"

namespace stitchwork {

/// Dots without batch dimensions read a matrix itself in place of its transpose, by their contracting
/// dimensions: libraries read both orders alike, and XLA has folded such transposes since 2017
/// (TransposeFolding). Transposes that nothing else reads go. Of canonicalize (core/passes/passes.h), behind
/// fold_tuples.
Graph fold_transposes(const Graph& graph, OpTrace* trace = nullptr);

}  // namespace stitchwork
