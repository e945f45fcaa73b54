// Matrix products.
#include <array>
#include <cmath>
#include <utility>

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

Value last_two_exchanged(Builder& b, const Value& x) {
  if (x.rank() < 2) return x;
  Dims order = counted(0, x.rank());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return b.transpose(x, order);
}

/// ONNX Runtime's: alpha times a matmul of either factor or its transpose.
Values lower_fused_matmul(NodeContext& c) {
  c.check(!c.flag("transBatchA", false) && !c.flag("transBatchB", false),
          "transBatchA and transBatchB are not supported");
  const Value x = c.flag("transA", false) ? last_two_exchanged(c.b, c.in(0)) : c.in(0);
  const Value y = c.flag("transB", false) ? last_two_exchanged(c.b, c.in(1)) : c.in(1);
  return {scaled(c, matmul(c.b, x, y), c.number("alpha", 1))};
}

/// ONNX Runtime's: A by the transpose of a matrix [N, K] of 4 or 8 bits, in blocks along K of a scale each,
/// and a zero point each, by default half of what the bits count to. Two of 4 bits are a byte, the lower
/// first.
Values lower_matmul_n_bits(NodeContext& c) {
  Builder& b = c.b;
  const std::int64_t k = c.integer("K"), n = c.integer("N"), size = c.integer("block_size"),
                     bits = c.integer("bits", 4);
  c.ignore("accuracy_level");  // how precise sums are at least
  c.check(bits == 4 || bits == 8, fmt::format("bits={}, 4 or 8 is needed", bits));
  c.check(k >= 1 && n >= 1 && size >= 1, "K, N and block_size must be positive");
  const std::int64_t blocks = (k + size - 1) / size;
  const Value &x = c.in(0), &packed = c.in(1), &scales = c.in(2);
  const DType type = x.dtype();
  /// [N, count] numbers of `bits` bits from rows of whole bytes.
  const auto unpacked = [&](const Value& bytes, std::int64_t count) {
    const std::int64_t row = (count * bits + 7) / 8;
    c.check(bytes.dtype() == DType::kU8 && product(bytes.dims()) == n * row,
            fmt::format("{} for {} rows of {} bytes", to_text(bytes.shape), n, row));
    const Value rows = b.reshape(bytes, {n, row});
    if (bits == 8) return b.convert(rows, type);
    const Value low = b.binary(Op::kAnd, rows, Builder::scalar_int(DType::kU8, 15));
    const Value high = b.binary(Op::kShiftRightLogical, rows, Builder::scalar_int(DType::kU8, 4));
    const Value both = b.reshape(stack(b, {low, high}, 2), {n, 2 * row});
    return b.convert(b.slice(both, 1, 0, count), type);
  };
  const auto per_block = [&](const Value& v) { return b.reshape(v, {n, blocks, 1}); };
  const Value values = b.reshape(unpacked(packed, blocks * size), {n, blocks, size});
  Value zeros = Builder::scalar(type, bits == 4 ? 8 : 128);
  if (c.has(3))
    zeros = per_block(c.in(3).dtype() == DType::kU8 ? unpacked(c.in(3), blocks) : b.convert(c.in(3), type));
  c.check(product(scales.dims()) == n * blocks, fmt::format("scales are {}", to_text(scales.shape)));
  const Value weights =
      b.reshape(b.mul(b.sub(values, zeros), per_block(b.convert(scales, type))), {n, blocks * size});
  const Value y = matmul(b, x, b.transpose(b.slice(weights, 1, 0, k), {1, 0}));
  return {c.has(5) ? b.add(y, c.in(5)) : y};
}

Values lower_einsum(NodeContext& c) { return {einsum(c.b, c.text("equation", ""), c.all_inputs())}; }

constexpr std::array kLinearRows = {
    OperatorRow{"Einsum", 12, lower_einsum},
    OperatorRow{"Gemm", 7, lower_gemm},
    OperatorRow{"MatMul", 7, lower_matmul},
    OperatorRow{"FusedMatMul", 1, lower_fused_matmul, kContrib},
    OperatorRow{"MatMulNBits", 1, lower_matmul_n_bits, kContrib},
};

}  // namespace

std::span<const OperatorRow> linear_operators() { return kLinearRows; }

}  // namespace stitchwork::onnx_reader
