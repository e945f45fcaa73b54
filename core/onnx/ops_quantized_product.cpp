// Matrix products and convolutions of quantized numbers: sums of 32-bit integers.
#include <array>

#include "core/onnx/common.h"
#include "core/onnx/convolution.h"
#include "core/onnx/operators.h"
#include "core/onnx/quantize.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// What quantizes the factors of a product, shaped to broadcast over a factor as over the product.
using Shaped = Value (*)(NodeContext& c, const Value& value, const Value& factor);

Value one_number(NodeContext& c, const Value& value, const Value& /*factor*/) {
  c.check(product(value.dims()) == 1,
          fmt::format("a scale or zero point is {}, one number is needed", to_text(value.shape)));
  return c.b.reshape(value, {});
}

/// One number, or one a row of a matrix [..., rows, columns]: a vector, or [..., rows, 1].
Value by_row(NodeContext& c, const Value& value, const Value& factor) {
  if (product(value.dims()) == 1) return c.b.reshape(value, {});
  const std::int64_t rank = factor.rank();
  const bool vector = value.rank() == 1;
  c.check(rank >= 2 && (vector || value.dims().back() == 1) &&
              value.dim(vector ? 0 : value.rank() - 2) == factor.dim(rank - 2),
          fmt::format("a scale or zero point is {}, one number or one a row of {} is needed",
                      to_text(value.shape), to_text(factor.shape)));
  return vector ? c.b.reshape(value, {value.dim(0), 1}) : value;
}

/// One number, or one a column: a vector, or [..., 1, columns].
Value by_column(NodeContext& c, const Value& value, const Value& factor) {
  if (product(value.dims()) == 1) return c.b.reshape(value, {});
  const std::int64_t rank = factor.rank();
  c.check(rank >= 2 && (value.rank() == 1 || value.dim(value.rank() - 2) == 1) &&
              value.dims().back() == factor.dims().back(),
          fmt::format("a scale or zero point is {}, one number or one a column of {} is needed",
                      to_text(value.shape), to_text(factor.shape)));
  return value;
}

/// One number, or one an output channel of a kernel [channels, ...].
Value by_channel(NodeContext& c, const Value& value, const Value& kernel) {
  if (product(value.dims()) == 1) return c.b.reshape(value, {});
  c.check(value.dims() == Dims{kernel.dim(0)},
          fmt::format("a scale or zero point is {}, one number or one a channel of {} is needed",
                      to_text(value.shape), to_text(kernel.shape)));
  return c.b.reshape(value, joined({kernel.dim(0)}, Dims(kernel.dims().size() - 1, 1)));
}

/// The same over a result [batch, channels, ...].
Value over_channels(NodeContext& c, const Value& value, const Value& kernel) {
  const Value shaped = by_channel(c, value, kernel);
  return shaped.rank() == 0 ? shaped
                            : c.b.reshape(shaped, Dims(shaped.dims().begin(), shaped.dims().end() - 1));
}

/// Input i without its zero point (input `zero`; absent: 0), in 32 bits.
Value centered(NodeContext& c, int i, int zero, Shaped shaped) {
  Builder& b = c.b;
  const Value& given = c.in(i);
  c.check(is_integral(given.dtype()) && bit_width(given.dtype()) == 8,
          fmt::format("input {} is {}, 8-bit integers are needed", i, to_text(given.shape)));
  const Value x = b.convert(given, DType::kS32);
  if (!c.has(zero)) return x;
  c.check(c.in(zero).dtype() == given.dtype(),
          fmt::format("input {} is {}, its zero point {}", i, name(given.dtype()), name(c.in(zero).dtype())));
  return b.sub(x, b.broadcast(b.convert(shaped(c, c.in(zero), given), DType::kS32), x.dims()));
}

Value matrix_sums(NodeContext& c, int left, int left_zero, int right, int right_zero) {
  return matmul(c.b, centered(c, left, left_zero, by_row), centered(c, right, right_zero, by_column));
}

/// Padding adds zero points: nothing, once they are subtracted.
Value convolution_sums(NodeContext& c, int input, int input_zero, int kernel, int kernel_zero) {
  return convolved(c, centered(c, input, input_zero, one_number),
                   centered(c, kernel, kernel_zero, by_channel));
}

/// The sums times the scale of the factors over that of the result (input `scale`, its zero point behind it).
/// In double precision, where no sum is rounded.
Value requantized(NodeContext& c, const Value& sums, const Value& scales, int scale) {
  Builder& b = c.b;
  const Value to = b.convert(one_number(c, c.in(scale), sums), DType::kF64);
  const Value ratio = b.mul(b.convert(sums, DType::kF64), b.broadcast(b.div(scales, to), sums.dims()));
  const Value zero_point = one_number(c, c.in(scale + 1), sums);
  c.check(is_integral(zero_point.dtype()) && bit_width(zero_point.dtype()) == 8,
          fmt::format("results of type {} are not supported", name(zero_point.dtype())));
  return quantized(b, ratio, zero_point, zero_point.dtype());
}

Values lower_matmul_integer(NodeContext& c) { return {matrix_sums(c, 0, 2, 1, 3)}; }
Values lower_conv_integer(NodeContext& c) { return {convolution_sums(c, 0, 2, 1, 3)}; }

Values lower_qlinear_matmul(NodeContext& c) {
  Builder& b = c.b;
  const Value sums = matrix_sums(c, 0, 2, 3, 5);
  const Value left = b.convert(by_row(c, c.in(1), c.in(0)), DType::kF64),
              right = b.convert(by_column(c, c.in(4), c.in(3)), DType::kF64);
  return {requantized(c, sums, b.mul(left, right), 6)};
}

Values lower_qlinear_conv(NodeContext& c) {
  Builder& b = c.b;
  Value sums = convolution_sums(c, 0, 2, 3, 5);
  if (c.has(8)) {
    c.check(c.in(8).dims() == Dims{sums.dim(1)} && c.in(8).dtype() == DType::kS32,
            fmt::format("the bias is {}, s32[{}] is needed", to_text(c.in(8).shape), sums.dim(1)));
    sums = b.add(sums, over_channels(c, c.in(8), c.in(3)));
  }
  const Value left = b.convert(one_number(c, c.in(1), c.in(0)), DType::kF64),
              right = b.convert(over_channels(c, c.in(4), c.in(3)), DType::kF64);
  return {requantized(c, sums, b.mul(left, right), 6)};
}

constexpr std::array kQuantizedProductRows = {
    OperatorRow{"ConvInteger", 10, lower_conv_integer},
    OperatorRow{"MatMulInteger", 10, lower_matmul_integer},
    OperatorRow{"QLinearConv", 10, lower_qlinear_conv},
    OperatorRow{"QLinearMatMul", 10, lower_qlinear_matmul},
};

}  // namespace

std::span<const OperatorRow> quantized_product_operators() { return kQuantizedProductRows; }

}  // namespace stitchwork::onnx_reader
