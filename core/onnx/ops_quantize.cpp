// Linear quantization.
#include <algorithm>
#include <array>
#include <utility>

#include "core/onnx/casts.h"
#include "core/onnx/moves.h"
#include "core/onnx/operators.h"
#include "core/onnx/quantize.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

/// The least and the largest number of an integer type of at most 16 bits.
std::pair<std::int64_t, std::int64_t> range_of(DType type) {
  const int bits = bit_width(type);
  if (is_signed_integer(type)) return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1};
  return {0, (std::int64_t{1} << bits) - 1};
}

}  // namespace

bool is_quantized_integer(DType type) { return is_integral(type) && bit_width(type) <= 16; }

Value quantized(Builder& b, const Value& ratio, const Value& zero_point, DType type) {
  // Held where the sum with any zero point saturates, so that it is an integer.
  constexpr double kBeyond = 1 << 18;
  const Value rounded = b.convert(b.unary(Op::kRoundNearestEven, ratio), DType::kF32);
  Value number = b.convert(b.min(b.max(rounded, -kBeyond), kBeyond), DType::kS32);
  if (zero_point.present()) number = b.add(number, b.convert(zero_point, DType::kS32));
  const auto [low, high] = range_of(type);
  const Value lowest = Builder::scalar_int(DType::kS32, low),
              highest = Builder::scalar_int(DType::kS32, high);
  return b.convert(b.min(b.max(number, lowest), highest), type);
}

namespace {

/// A scale or zero point in front of every element of x: one for all, one an index along `axis`, or one a
/// block of elements along it.
class Granularity {
 public:
  Granularity(NodeContext& context, const Value& x) : c(context), x_(x) {
    if (c.version < 13) return;  // one for all only
    axis_ = c.integer("axis", 1);
    block_ = c.version >= 21 ? c.integer("block_size", 0) : 0;
    c.check_range("block_size", {block_}, 0, std::int64_t{1} << 40);
  }

  Value spread(const Value& value, const char* what) const {
    if (product(value.dims()) == 1 && value.rank() <= 1) return c.b.reshape(value, {});
    c.check(c.version >= 13, fmt::format("{} must be one number in operator set {}", what, c.version));
    const std::int64_t axis = c.axis(axis_, x_.rank());
    if (block_ == 0) {
      c.check(value.dims() == Dims{x_.dim(axis)},
              fmt::format("{} is {}, one number an index of dimension {} of {} is needed", what,
                          to_text(value.shape), axis, to_text(x_.shape)));
      return c.b.broadcast_in(value, x_.dims(), {axis});
    }
    Dims blocks = x_.dims();
    std::int64_t& extent = blocks[static_cast<std::size_t>(axis)];
    extent = (extent + block_ - 1) / block_;
    c.check(value.dims() == blocks,
            fmt::format("{} is {}, [{}] is needed", what, to_text(value.shape), fmt::join(blocks, ",")));
    c.check_range("the input's extent", {x_.dim(axis)}, 0, std::int64_t{1} << 24);
    Dims places;
    for (std::int64_t i = 0; i < x_.dim(axis); ++i) places.push_back(i / block_);
    return take(c.b, value, axis, places);
  }

 private:
  NodeContext& c;
  const Value& x_;
  std::int64_t axis_ = 1, block_ = 0;
};

void check_zero_point(NodeContext& c, const Value& scale) {
  if (!c.has(2)) return;
  c.check(product(c.in(2).dims()) == product(scale.dims()),
          fmt::format("zero point {} and scale {} differ in shape", to_text(c.in(2).shape),
                      to_text(scale.shape)));
}

Values lower_quantize(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &scale = c.in(1);
  const Granularity granularity(c, x);
  check_zero_point(c, scale);
  DType type = DType::kU8;
  if (c.version >= 21 && c.integer("output_dtype", 0) != 0) type = c.dtype("output_dtype", type);
  if (c.has(2)) {
    c.check(c.version < 21 || c.integer("output_dtype", 0) == 0 || type == c.in(2).dtype(),
            fmt::format("output_dtype {} and the zero point's type {} differ", name(type),
                        name(c.in(2).dtype())));
    type = c.in(2).dtype();
  }
  DType precision = scale.dtype();
  if (c.version >= 23 && c.integer("precision", 0) != 0) precision = c.dtype("precision", precision);
  c.check(is_floating(precision),
          fmt::format("the scale's type {} is no floating-point type", name(precision)));
  const bool saturate = c.version < 19 || c.flag("saturate", true);
  const Value ratio =
      b.div(b.convert(x, precision), granularity.spread(b.convert(scale, precision), "y_scale"));
  const Value zero_point = c.has(2) ? granularity.spread(c.in(2), "y_zero_point") : Value{};
  if (is_quantized_integer(type)) return {quantized(b, ratio, zero_point, type)};
  c.check(is_floating(type) && byte_size(type) == 1,
          fmt::format("quantization to {} is not supported", name(type)));
  const Value shifted = zero_point.present() ? b.add(ratio, b.convert(zero_point, precision)) : ratio;
  return {cast(b, shifted, type, saturate)};
}

/// (x - zero point) * scale, in the result's type, single precision at least: differences of 16-bit integers
/// are exact there.
Values lower_dequantize(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &scale = c.in(1);
  const Granularity granularity(c, x);
  check_zero_point(c, scale);
  DType type = scale.dtype();
  if (c.version >= 23 && c.integer("output_dtype", 0) != 0) type = c.dtype("output_dtype", type);
  c.check(is_floating(type), fmt::format("the result's type {} is no floating-point type", name(type)));
  const DType in = type == DType::kF64 ? type : DType::kF32;
  Value difference = b.convert(x, in);
  if (c.has(2)) {
    c.check(c.in(2).dtype() == x.dtype(), "the zero point and the input differ in type");
    difference = b.sub(difference, b.convert(granularity.spread(c.in(2), "x_zero_point"), in));
  }
  return {b.convert(b.mul(difference, granularity.spread(b.convert(scale, in), "x_scale")), type)};
}

/// The range is widened to hold 0; of zeros alone it is 1.
Values lower_dynamic_quantize(NodeContext& c) {
  Builder& b = c.b;
  const Value& x = c.in(0);
  c.check(x.dtype() == DType::kF32, fmt::format("the input is {}, f32 is needed", to_text(x.shape)));
  Dims all;
  for (std::int64_t d = 0; d < x.rank(); ++d) all.push_back(d);
  const Value highest = b.max(b.reduce(Op::kMaximum, x, all), 0),
              lowest = b.min(b.reduce(Op::kMinimum, x, all), 0);
  const Value one = Builder::scalar(x.dtype(), 1);
  const Value range = b.select(b.compare(Comparison::kEq, highest, lowest), one, b.sub(highest, lowest));
  const Value scale = b.div(range, 255);
  const Value start = b.min(b.max(b.div(b.neg(lowest), scale), 0), 255);
  const Value zero_point = b.convert(b.unary(Op::kRoundNearestEven, start), DType::kU8);
  return {quantized(b, b.div(x, scale), zero_point, DType::kU8), scale, zero_point};
}

constexpr std::array kQuantizeRows = {
    OperatorRow{"DequantizeLinear", 10, lower_dequantize},
    OperatorRow{"DynamicQuantizeLinear", 11, lower_dynamic_quantize},
    OperatorRow{"QuantizeLinear", 10, lower_quantize},
};

}  // namespace

std::span<const OperatorRow> quantize_operators() { return kQuantizeRows; }

}  // namespace stitchwork::onnx_reader
