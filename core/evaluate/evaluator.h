// Reference evaluator: what a graph computes, without any compiler. Values are stored in the op's dtype;
// reductions and matrix products accumulate in float64 (docs/inputs.md).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/literal.h"

namespace stitchwork {

class Rounding;

/// What to do about a constant whose values a text leaves out.
inline constexpr const char* kLeftOutHint =
    "export it with large constants (JAX: as_hlo_text(print_large_constants=True); XLA: "
    "--xla_dump_large_constants); without them it can be planned, not run";

/// Value of one node of `computation` from its operands' values. Ops that name computations (reduce, call,
/// while, conditional, fusion, map) are evaluated through `graph`. Throws Error naming the node where the op
/// or dtype is not executable (custom-call, collectives, ...).
Literal evaluate_node(const Graph& graph, const Computation& computation, const Node& node,
                      std::span<const Literal* const> operands);

/// What a computation gives for these arguments: its root's value.
Literal evaluate_computation(const Graph& graph, ComputationId id, std::span<const Literal* const> arguments);

/// The number of the branch a conditional takes for this predicate or index.
std::size_t taken_branch(const Node& conditional, const Literal& selector);

/// Values of the entry computation's root (a tuple gives one literal an element) for `inputs` by parameter
/// number. Intermediate values are freed after their last use. `observe`, if given, sees every node's value.
std::vector<Literal> evaluate(const Graph& graph, std::span<const Literal> inputs,
                              const std::function<void(const Node&, const Literal&)>& observe = {});

/// The same with every op's value moved by `rounding` (core/evaluate/rounding.h): what another implementation
/// might give.
std::vector<Literal> evaluate_rounded(const Graph& graph, std::span<const Literal> inputs,
                                      Rounding& rounding);

/// Bytes of the values that evaluate() holds at once at most, parameters and constants not counted: every
/// value until its last use, and beside a matrix product its operands and result once more in float64.
double evaluation_bytes(const Graph& graph);

}  // namespace stitchwork
