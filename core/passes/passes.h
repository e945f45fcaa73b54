// Graph passes: pure functions from graph to graph. None changes an op's class (docs/architecture.md). Those
// that take a trace add to it what became of the ops they do not keep.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/passes/op_trace.h"

namespace stitchwork {

/// Joins the two ends of asynchronous pairs (`copy-start` ... `copy-done`, `async-start` of any op,
/// collectives) to the op they do, where its start is only waited for in the same computation.
Graph join_async(const Graph& graph, OpTrace* trace = nullptr);
/// Inlines every call and fusion (not while or conditional) into its caller; inlined nodes keep their
/// metadata (scopes relative to the call get the call's in front) and get names unique in the caller; the
/// caller's own nodes keep theirs. Computation::imported remembers what each fusion held.
Graph inline_calls(const Graph& graph, OpTrace* trace = nullptr);
/// Writes ops that nothing can generate by ops that it can: bitcasts between layouts or types (as transposes,
/// reshapes and bitcast-converts of the logical values), bitcast-converts to another width, map,
/// batch-norm-*, hyperbolic and inverse trigonometric functions, mulhi of at most 32 bits, cumulative windows
/// and reductions by several operations (core/passes/expand_windows.cpp, core/passes/expand_reducers.cpp);
/// drops markers that give their operand (domain, custom calls about sharding, collectives among one device)
/// and custom calls that only act.
Graph expand(const Graph& graph, OpTrace* trace = nullptr);
/// A custom call that gives no array and is called for what it does (jax.debug.print): no output depends on
/// it, and `expand` leaves it out.
bool only_acts(const Node& node);
/// Those of a module as it was read, "debug_print.1 (xla_ffi_python_cpu_callback)", in their order.
std::vector<std::string> left_out_effects(const Graph& graph);
/// Complex numbers as pairs of real ones: between ops two arrays; parameters, results, elements of tuples and
/// what FFT takes and gives one array with a last dimension of 2, the same bytes. Ops that are not written so
/// (sorting, factors of matrices, reducers other than sums and products) stay complex behind
/// bitcast-converts.
Graph split_complex(const Graph& graph, OpTrace* trace = nullptr);
bool any_complex(const Graph& graph);
/// Removes get-tuple-element(tuple(...)) pairs.
Graph fold_tuples(const Graph& graph, OpTrace* trace = nullptr);
/// Removes entry-reachable-dead nodes (parameters stay) and unused computations.
Graph eliminate_dead_code(const Graph& graph, OpTrace* trace = nullptr);
/// Merges nodes of equal op, operands, attributes and shape (constants by value).
Graph eliminate_common_subexpressions(const Graph& graph, OpTrace* trace = nullptr);

/// What every planner sees: join_async, inline_calls, expand, split_complex, fold_tuples, common
/// subexpressions, dead code. Idempotent.
Graph canonicalize(const Graph& graph, OpTrace* trace = nullptr);

}  // namespace stitchwork
