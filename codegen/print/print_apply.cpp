#include <cctype>
#include <cmath>

#include "codegen/print/print_values.h"
#include "core/base/error.h"
#include "core/graph/float_semantics.h"

namespace stitchwork {
namespace {

/// expf( -> exp(: the double function of a name the table gives for float.
std::string double_functions(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool called = text[i] == 'f' && i + 1 < text.size() && text[i + 1] == '(' && i > 0 &&
                        std::isalnum(static_cast<unsigned char>(text[i - 1]));
    if (!called) result += text[i];
  }
  return result;
}

std::string substituted(std::string_view pattern, const std::vector<std::string>& arguments) {
  std::string result;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '$' && i + 1 < pattern.size()) {
      result += arguments.at(static_cast<std::size_t>(pattern[++i] - '0'));
    } else {
      result += pattern[i];
    }
  }
  return result;
}

std::string convert_text(DType from, DType to, const std::string& v) {
  if (from == to) return v;
  if (to == DType::kPred) return fmt::format("({} != 0)", v);
  if (is_floating(to)) return rounded_text(to, fmt::format("({}){}", value_type(to), v));
  if (is_floating(from)) return fmt::format("sw_to_int<{}>({})", value_type(to), v);
  if (bit_width(to) < 8)  // the low bits, with their sign where the type has one
    return fmt::format("({})(({})({}) << {} >> {})", value_type(to),
                       is_signed_integer(to) ? "int" : "unsigned", v, 32 - bit_width(to), 32 - bit_width(to));
  return fmt::format("({}){}", value_type(to), v);
}

std::string bitcast_text(DType from, DType to, const std::string& v) {
  SW_CHECK(byte_size(from) == byte_size(to), "bitcast-convert from {} to {}", name(from), name(to));
  const bool half = to == DType::kF16 || to == DType::kBF16;
  const std::string bits = stored_text(from, v);
  const std::string cast = storage_type(from) == storage_type(to)
                               ? bits
                               : fmt::format("sw_bitcast<{}>({})", storage_type(to), bits);
  return half || to == DType::kPred ? load_text(to, cast) : cast;
}

std::string_view comparison_text(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEq:
      return "==";
    case Comparison::kNe:
      return "!=";
    case Comparison::kLt:
      return "<";
    case Comparison::kLe:
      return "<=";
    case Comparison::kGt:
      return ">";
    case Comparison::kGe:
      return ">=";
  }
  return "==";
}

/// The bits are the type's own: subnormal numbers of f16 are normal ones of float.
std::string reduce_precision_text(DType type, const std::string& v, int exponent_bits, int mantissa_bits) {
  const FloatFormat own = float_format(type);
  const bool half = byte_size(type) == 2;
  const std::string reduced = fmt::format(
      "sw_reduce_precision<{}, {}>({}, {}, {})", own.exponent_bits, own.mantissa_bits,
      half ? exactly_stored_text(type, v) : fmt::format("sw_bits({})", v), exponent_bits, mantissa_bits);
  if (half) return load_text(type, reduced);
  return fmt::format("{}({})", type == DType::kF64 ? "sw_double" : "sw_float", reduced);
}

/// Products are shorter than an exponential for exponents up to this.
/// Derived from repeated squaring: at most 11 products for exponents below.
constexpr double kLargestUnrolledPower = 64;

}  // namespace

std::string apply_text(const Computation& computation, const Node& node,
                       const std::vector<std::string>& arguments) {
  const DType to = node.shape.dtype;
  const DType from = node.operands.empty() ? to : computation.node(node.operands[0]).shape.dtype;
  switch (node.op) {
    case Op::kConvert:
      return convert_text(from, to, arguments[0]);
    case Op::kBitcastConvert:
      return bitcast_text(from, to, arguments[0]);
    case Op::kCompare: {
      const std::string_view how = comparison_text(node.attrs.comparison.value_or(Comparison::kEq));
      if (is_floating(from) && is_total_order(node))
        return fmt::format("(sw_total_order({}) {} sw_total_order({}))", arguments[0], how, arguments[1]);
      return fmt::format("({} {} {})", arguments[0], how, arguments[1]);
    }
    case Op::kReducePrecision: {
      const auto [exponent_bits, mantissa_bits] = reduced_precision(node);
      return reduce_precision_text(to, arguments[0], exponent_bits, mantissa_bits);
    }
    case Op::kPower:
      if (!is_floating(to)) break;
      if (const auto exponent = one_integer(source_of(computation, node.operands[1]));
          exponent && std::abs(*exponent) <= kLargestUnrolledPower) {
        const char* function = to == DType::kF64 ? "sw_integer_power" : "sw_integer_powf";
        return rounded_text(to, fmt::format("{}<{}>({})", function, *exponent, arguments[0]));
      }
      break;
    case Op::kDot:  // sums are rounded, as the op's result is
      return fmt::format(
          "({})", substituted(def(node.op).cuda, {convert_text(from, to, arguments[0]),
                                                  convert_text(computation.node(node.operands[1]).shape.dtype,
                                                               to, arguments[1])}));
    case Op::kGetDimensionSize: {
      const auto dim = static_cast<std::size_t>(node.attrs.dimensions.at(0));
      return integer_text(computation.node(node.operands[0]).shape.dims.at(dim), to);
    }
    default:
      break;
  }
  const OpDef& row = def(node.op);
  std::string_view pattern = is_floating(from) || row.cuda_int.empty() ? row.cuda : row.cuda_int;
  SW_CHECK(!pattern.empty(), "{} ({}) has no CUDA expression", node.name, row.name);
  // select's first operand is the predicate; its results have the type of the others.
  const DType computed = node.op == Op::kSelect ? to : from;
  const std::string text =
      substituted(computed == DType::kF64 ? double_functions(pattern) : std::string(pattern), arguments);
  return is_exact(node.op) ? text : rounded_text(to, text);
}

}  // namespace stitchwork
