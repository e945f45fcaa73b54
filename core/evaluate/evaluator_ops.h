// The families of the evaluator, one file each; called by evaluate_node only. Operands fit the node
// (infer_shape accepted it) and results have the node's shape.
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/literal.h"

namespace stitchwork {

using Values = std::span<const Literal* const>;

/// evaluator_elementwise.cpp: every op of the element-wise classes but map. Operands of one element stand for
/// any number of equal ones. `shape` is the result's (a reducer's scalar ops are run on whole vectors).
Literal evaluate_elementwise(const Node& node, const Shape& shape, Values operands);
bool has_elementwise_kernel(Op op);

/// evaluator_layout.cpp: iota, broadcast, reshape, transpose, slice, reverse, concatenate, pad.
Literal evaluate_layout(const Node& node, Values operands);
/// The same bytes, each array in its own layout: `from` is the operand's shape with its layout.
Literal evaluate_bitcast(const Node& node, const Shape& from, const Literal& operand);
Literal evaluate_iota(const Node& node);

/// evaluator_gather.cpp: gather, dynamic-slice, dynamic-update-slice.
Literal evaluate_gather(const Node& node, Values operands);
Literal evaluate_dynamic_slice(const Node& node, Values operands);
Literal evaluate_dynamic_update_slice(const Node& node, Values operands);

/// evaluator_scatter.cpp
Literal evaluate_scatter(const Graph& graph, const Node& node, Values operands);

/// evaluator_reduce.cpp, evaluator_window.cpp
Literal evaluate_reduce(const Graph& graph, const Node& node, Values operands);
/// Of each element of a reduction that adds floats: how far a sum is from the exact one that is accumulated
/// in chains of up to 4096 terms in f32 (f64 for f64), as threads do. Errors of like terms add up: equal ones
/// lose a quarter of a unit each, in the worst case, where different ones lose a unit times the root of their
/// number.
std::vector<double> chained_sum_errors(const Graph& graph, const Node& node, Values operands);
/// Inputs and initial values in the types that the reducer takes; what differs is put into `converted`.
std::vector<const Literal*> reducer_operands(const Graph& graph, const Node& node, Values operands,
                                             std::vector<Literal>& converted);
Literal evaluate_reduce_window(const Graph& graph, const Node& node, Values operands);
Literal evaluate_select_and_scatter(const Graph& graph, const Node& node, Values operands);

/// evaluator_linear.cpp: accumulate in float64 (integers in 64 bits).
Literal evaluate_dot(const Node& node, Values operands);
Literal evaluate_convolution(const Node& node, Values operands);

/// evaluator_sort.cpp
Literal evaluate_sort(const Graph& graph, const Node& node, Values operands);
/// The k largest (or smallest) of every row with their places; NaN counts as the largest, the first of equals
/// wins.
Literal evaluate_top_k(const Node& node, Values operands);

/// evaluator_factors.cpp: cholesky and triangular-solve, in float64 by LAPACK and BLAS. What is not a
/// positive definite matrix gives NaN.
Literal evaluate_cholesky(const Node& node, Values operands);
Literal evaluate_triangular_solve(const Node& node, Values operands);
/// A call of LAPACK or BLAS that JAX makes on a CPU (core/evaluate/lapack_call.h).
Literal evaluate_lapack_call(const Node& node, Values operands);

/// evaluator_fft.cpp: in float64, of pairs of real numbers that stand for complex ones (split_complex).
Literal evaluate_fft(const Node& node, Values operands);

/// evaluator_random.cpp: rng-bit-generator, by XLA's own counters, so that the bits are XLA's.
Literal evaluate_random_bits(const Node& node, Values operands);

/// evaluator_scalar.cpp: a computation over scalars (a reducer, a comparator, map's function) applied to
/// vectors of `count` elements at once, one a parameter. One literal a result.
std::vector<Literal> apply_to_vectors(const Graph& graph, ComputationId computation, Values arguments,
                                      std::int64_t count);

}  // namespace stitchwork
