// What an op's attributes and constant operands say about arithmetic of floats.
#pragma once

#include <optional>

#include "core/graph/graph.h"

namespace stitchwork {

/// Fields of a binary float of IEEE 754's kind.
struct FloatFormat {
  int exponent_bits = 0, mantissa_bits = 0;
};
/// Of f16, bf16, f32, f64.
FloatFormat float_format(DType type);

/// Whether the op's result is one of its operands' values, or representable with them: 16-bit floats, which
/// are computed in f32, need no rounding.
bool is_exact(Op op);

/// What a reduce-precision rounds to. Throws Error where no float has such fields.
FloatFormat reduced_precision(const Node& node);

/// Whether a compare of floats is type=TOTALORDER: -NaN < -infinity < ... < -0 < +0 < ... < infinity < NaN.
bool is_total_order(const Node& compare);

/// Whether some op of the module tells NaNs of a type apart: a total order by their sign, a bitcast-convert
/// by all bits.
bool tells_nans_apart(const Graph& graph, DType type);

/// The op behind those that only move or convert values.
const Node& source_of(const Computation& computation, NodeId id);
/// What all elements of a constant are, where that is an integer small enough for every float.
std::optional<double> one_integer(const Node& constant);

}  // namespace stitchwork
