// Graph passes: pure functions from graph to graph. None changes an op's class (docs/architecture.md).
#pragma once

#include "core/graph.h"

namespace stitchwork {

/// Inlines every call (not fusion, while or conditional) into its caller; inlined nodes keep their metadata
/// (scopes relative to the call get the call's in front) and get names unique in the caller; the caller's own
/// nodes keep theirs.
Graph inline_calls(const Graph& graph);
/// Removes get-tuple-element(tuple(...)) pairs.
Graph fold_tuples(const Graph& graph);
/// Removes entry-reachable-dead nodes (parameters stay) and unused computations.
Graph eliminate_dead_code(const Graph& graph);
/// Merges nodes of equal op, operands, attributes and shape (constants by value).
Graph eliminate_common_subexpressions(const Graph& graph);

/// What every planner sees: inline_calls, fold_tuples, common subexpressions, dead code. Idempotent.
Graph canonicalize(const Graph& graph);

}  // namespace stitchwork
