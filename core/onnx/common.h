// Pieces that several families of operators lower to.
#pragma once

#include <functional>

#include "core/onnx/node_context.h"

namespace stitchwork::onnx_reader {

/// Steps that are unrolled: planners fuse across them, and a loop's state passes through memory at every
/// step. Longer ones would make the graph grow with the sequence.
inline constexpr std::int64_t kUnrolled = 64;

/// 0 of x's type, of rank 0.
Value zero(const Value& x);

/// exp(x - max) / sum along `dims`.
Value softmax(Builder& b, const Value& x, const Dims& dims);
/// x * sigmoid(alpha * x).
Value swish(Builder& b, const Value& x, double alpha);

/// NumPy's matmul: vectors get a dimension of 1 that is dropped again, leading dimensions broadcast.
Value matmul(Builder& b, const Value& x, const Value& y, std::optional<DType> type = std::nullopt);

/// Mean along `dims`, which stay as 1.
Value mean(Builder& b, const Value& x, const Dims& dims);

/// Indices with negative ones counted from the end of `extent` elements.
Value wrapped(Builder& b, const Value& indices, std::int64_t extent);

/// [first, first + count)
Dims counted(std::int64_t first, std::int64_t count);
Dims joined(Dims first, const Dims& second);

/// Element `index` of x along dimension `dim`, which is dropped.
Value at(Builder& b, const Value& x, std::int64_t dim, std::int64_t index);
/// Values of equal shape along a new dimension.
Value stack(Builder& b, const std::vector<Value>& parts, std::int64_t dim);

/// The recurrence of Scan and of the recurrent operators: `step` gets the state and element t of every
/// sequence (dimension 0), gives the next state and elements of the outputs. Unrolled if it is short, else a
/// loop.
struct Recurrence {
  std::vector<Value> state;    ///< after the last step
  std::vector<Value> outputs;  ///< elements stacked along dimension 0, in the order of t
};
using Step = std::function<Recurrence(const std::vector<Value>& state, const std::vector<Value>& elements)>;
/// Every sequence has `count` >= 1 elements. `backwards`: t = count - 1 first.
Recurrence recur(Builder& b, std::int64_t count, std::vector<Value> state,
                 const std::vector<Value>& sequences, const Step& step, bool backwards = false);

}  // namespace stitchwork::onnx_reader
