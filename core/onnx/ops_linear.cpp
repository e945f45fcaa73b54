// Matrix products.
#include <array>
#include <cmath>

#include "core/onnx/common.h"
#include "core/onnx/einsum.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

Values lower_matmul(NodeContext& c) { return {matmul(c.b, c.in(0), c.in(1))}; }

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

Values lower_einsum(NodeContext& c) { return {einsum(c.b, c.text("equation", ""), c.all_inputs())}; }

constexpr std::array kLinearRows = {
    OperatorRow{"Einsum", 12, lower_einsum},
    OperatorRow{"Gemm", 7, lower_gemm},
    OperatorRow{"MatMul", 7, lower_matmul},
};

}  // namespace

std::span<const OperatorRow> linear_operators() { return kLinearRows; }

}  // namespace stitchwork::onnx_reader
