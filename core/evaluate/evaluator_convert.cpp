// Kernels of the element-wise ops that change the element type or its precision.
#include <algorithm>
#include <cmath>

#include "core/evaluate/evaluator_elementwise.h"
#include "core/evaluate/scalar_ops.h"
#include "core/graph/dtype_dispatch.h"
#include "core/graph/float_semantics.h"

namespace stitchwork::elementwise_kernels {
namespace {

/// A number truncated and held in the range of an integer type of fewer than 8 bits; NaN gives 0.
std::int64_t saturated(double value, DType type) {
  if (std::isnan(value)) return 0;
  const int bits = bit_width(type) - (is_signed_integer(type) ? 1 : 0);
  const double high = std::ldexp(1.0, bits) - 1, low = is_signed_integer(type) ? -high - 1 : 0;
  return static_cast<std::int64_t>(std::clamp(value, low, high));
}

/// Conversions from and to types that cannot be computed with: element by element.
void convert_small(const Literal& from, Literal& to) {
  const DType source = from.shape.dtype, target = to.shape.dtype;
  const std::int64_t stride = step(from);
  for (std::int64_t i = 0, n = to.shape.elements_count(); i < n; ++i) {
    if (!is_floating(source) && !is_floating(target))
      to.set_int(i, from.get_int(i * stride));
    else if (is_integral(target) && bit_width(target) < 8)
      to.set_int(i, saturated(from.get_double(i * stride), target));
    else
      to.set_double(i, from.get_double(i * stride));
  }
}

/// Bits of a float of format `own`, rounded to `to`: nearest even, overflow to infinity; with fewer exponent
/// bits, what is below the smallest normal number becomes zero. NaN stays (XLA, elemental_ir_emitter.cc,
/// EmitReducePrecisionIR).
template <typename U>
U reduce_precision(U bits, FloatFormat own, FloatFormat to) {
  const auto one = U{1};
  const auto sign = static_cast<U>(one << (own.exponent_bits + own.mantissa_bits));
  const auto infinity = static_cast<U>(((one << own.exponent_bits) - 1) << own.mantissa_bits);
  auto magnitude = static_cast<U>(bits & (sign - 1));
  if (magnitude > infinity) return bits;
  if (to.mantissa_bits < own.mantissa_bits) {
    const int dropped = own.mantissa_bits - to.mantissa_bits;
    const auto half = static_cast<U>(one << (dropped - 1)), last = static_cast<U>((magnitude >> dropped) & 1);
    magnitude = static_cast<U>((magnitude + half - 1 + last) >> dropped << dropped);
  }
  if (to.exponent_bits < own.exponent_bits) {
    const int bias = (1 << (own.exponent_bits - 1)) - 1, reduced = (1 << (to.exponent_bits - 1)) - 1;
    const auto exponent = static_cast<int>(magnitude >> own.mantissa_bits);
    if (exponent > bias + reduced) magnitude = infinity;
    if (exponent <= bias - reduced) magnitude = 0;
  }
  return static_cast<U>((bits & sign) | magnitude);
}

}  // namespace

void convert(const Node&, Values operands, Literal& result) {
  if (!is_executable(operands[0]->shape.dtype) || !is_executable(result.shape.dtype))
    return convert_small(*operands[0], result);
  with_storage(operands[0]->shape.dtype, [&](auto from_tag) {
    with_storage(result.shape.dtype, [&](auto to_tag) {
      using From = decltype(from_tag);
      using To = decltype(to_tag);
      const auto* a = operands[0]->data<typename From::Stored>();
      auto* out = result.data<typename To::Stored>();
      const std::int64_t sa = step(*operands[0]);
      for (std::int64_t i = 0, n = result.shape.elements_count(); i < n; ++i)
        out[i] = To::narrow(convert_value<typename To::Value>(From::widen(a[i * sa])));
    });
  });
}

void bitcast_convert(const Node& node, Values operands, Literal& result) {
  if (operands[0]->bytes.size() != result.bytes.size()) refuse(node, operands[0]->shape.dtype);
  result.bytes = operands[0]->bytes;
}

void reduce_precision_kernel(const Node& node, Values operands, Literal& result) {
  const DType type = result.shape.dtype;
  if (!is_floating(type)) refuse(node, type);
  const FloatFormat to = reduced_precision(node), own = float_format(type);
  with_width(type, [&](auto tag) {
    using U = decltype(tag);
    const U* a = operands[0]->data<U>();
    U* out = result.data<U>();
    for (std::int64_t i = 0, n = result.shape.elements_count(); i < n; ++i)
      out[i] = reduce_precision(a[i * step(*operands[0])], own, to);
  });
}

}  // namespace stitchwork::elementwise_kernels
