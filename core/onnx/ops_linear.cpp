// Matrix products.
#include <array>
#include <cmath>

#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

Dims counted(std::int64_t first, std::int64_t count) {
  Dims dims;
  for (std::int64_t i = 0; i < count; ++i) dims.push_back(first + i);
  return dims;
}

/// NumPy's matmul: vectors get a dimension of 1 that is dropped again, leading dimensions broadcast.
Value matmul(NodeContext& c, const Value& left, const Value& right,
             std::optional<DType> type = std::nullopt) {
  Builder& b = c.b;
  c.check(left.rank() >= 1 && right.rank() >= 1, "a scalar has no product");
  const bool left_vector = left.rank() == 1, right_vector = right.rank() == 1;
  Value x = left_vector ? b.reshape(left, {1, left.dim(0)}) : left;
  Value y = right_vector ? b.reshape(right, {right.dim(0), 1}) : right;
  c.check(x.dims().back() == y.dim(y.rank() - 2),
          fmt::format("shapes {} and {} do not multiply", to_text(left.shape), to_text(right.shape)));
  DotDims dims;
  if (y.rank() == 2) {
    dims.lhs_contracting = {x.rank() - 1};
    dims.rhs_contracting = {0};
  } else {
    const Dims x_batch(x.dims().begin(), x.dims().end() - 2), y_batch(y.dims().begin(), y.dims().end() - 2);
    const Dims batch = broadcast_dims(x_batch, y_batch);
    const auto spread = [&](const Value& v) {
      Dims full = batch;
      full.insert(full.end(), v.dims().end() - 2, v.dims().end());
      return b.broadcast(v, full);
    };
    x = spread(x);
    y = spread(y);
    const auto count = static_cast<std::int64_t>(batch.size());
    dims.lhs_batch = dims.rhs_batch = counted(0, count);
    dims.lhs_contracting = {count + 1};
    dims.rhs_contracting = {count};
  }
  const Value result = b.dot(x, y, dims, type);
  Dims shape = result.dims();
  if (right_vector) shape.pop_back();
  if (left_vector) shape.erase(shape.end() - (right_vector ? 1 : 2));
  return b.reshape(result, shape);
}

Values lower_matmul(NodeContext& c) { return {matmul(c, c.in(0), c.in(1))}; }

/// x * factor; integers only by whole numbers.
Value scaled(NodeContext& c, const Value& x, double factor) {
  if (factor == 1) return x;
  c.check(is_floating(x.dtype()) || std::floor(factor) == factor,
          fmt::format("{} of {} elements", factor, name(x.dtype())));
  return c.b.mul(x, factor);
}

Values lower_gemm(NodeContext& c) {
  const Value &x = c.in(0), &y = c.in(1);
  c.check(x.rank() == 2 && y.rank() == 2, "A and B must be matrices");
  DotDims dims;
  dims.lhs_contracting = {c.flag("transA", false) ? 0 : 1};
  dims.rhs_contracting = {c.flag("transB", false) ? 1 : 0};
  const double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  const Value product = scaled(c, c.b.dot(x, y, dims), alpha);
  if (!c.has(2)) return {product};
  return {c.b.add(product, c.b.broadcast(scaled(c, c.in(2), beta), product.dims()))};
}

constexpr std::array kRows = {
    OperatorRow{"Gemm", 7, lower_gemm},
    OperatorRow{"MatMul", 7, lower_matmul},
};

}  // namespace

std::span<const OperatorRow> linear_operators() { return kRows; }

}  // namespace stitchwork::onnx_reader
