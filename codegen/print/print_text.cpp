#include "codegen/print/print_text.h"

#include <bit>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_set>

#include "core/base/arithmetic.h"
#include "core/base/error.h"

namespace stitchwork {

std::string_view value_type(DType dtype) {
  switch (dtype) {
    case DType::kPred:
      return "bool";
    case DType::kS1:
    case DType::kS2:
    case DType::kS4:
    case DType::kS8:
      return "signed char";
    case DType::kS16:
      return "short";
    case DType::kS32:
      return "int";
    case DType::kS64:
      return "long long";
    case DType::kU1:
    case DType::kU2:
    case DType::kU4:
    case DType::kU8:
    case DType::kF8E8M0FNU:  // moved as bytes (core/passes/expand_small.cpp)
    case DType::kF8E3M4:
    case DType::kF8E4M3:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E4M3B11FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
      return "unsigned char";
    case DType::kU16:
      return "unsigned short";
    case DType::kU32:
      return "unsigned";
    case DType::kU64:
      return "unsigned long long";
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    default:
      SW_CHECK(false, "{} has no generated code", name(dtype));
  }
}

std::string_view storage_type(DType dtype) {
  if (dtype == DType::kPred) return "unsigned char";
  if (dtype == DType::kF16 || dtype == DType::kBF16) return "unsigned short";
  return value_type(dtype);
}

std::string load_text(DType dtype, const std::string& place) {
  if (dtype == DType::kPred) return fmt::format("({} != 0)", place);
  if (dtype == DType::kF16) return fmt::format("sw_f16({})", place);
  if (dtype == DType::kBF16) return fmt::format("sw_bf16({})", place);
  return place;
}

std::string load_alone_text(DType dtype, const std::string& place) {
  return dtype == DType::kBF16 ? fmt::format("sw_bf16_alone({})", place) : load_text(dtype, place);
}

std::string stored_text(DType dtype, const std::string& value) {
  if (dtype == DType::kPred) return fmt::format("(unsigned char){}", value);
  if (dtype == DType::kF16) return fmt::format("sw_to_f16({})", value);
  if (dtype == DType::kBF16) return fmt::format("sw_to_bf16({})", value);
  return value;
}

std::string exactly_stored_text(DType dtype, const std::string& value) {
  return dtype == DType::kBF16 ? fmt::format("sw_bf16_bits({})", value) : stored_text(dtype, value);
}

std::string rounded_text(DType dtype, const std::string& value) {
  if (dtype == DType::kF16) return fmt::format("sw_round_f16({})", value);
  if (dtype == DType::kBF16) return fmt::format("sw_round_bf16({})", value);
  return value;
}

std::string float_text(double value, DType dtype) {
  const bool wide = dtype == DType::kF64;
  if (std::isnan(value)) {  // with its sign and payload
    if (wide) return fmt::format("sw_double({:#x}ull)", std::bit_cast<std::uint64_t>(value));
    return fmt::format("sw_float({:#x}u)", std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  }
  if (std::isinf(value)) {
    if (wide) return value > 0 ? "sw_double(0x7ff0000000000000ull)" : "sw_double(0xfff0000000000000ull)";
    return value > 0 ? "sw_float(0x7f800000u)" : "sw_float(0xff800000u)";
  }
  std::string text = wide ? fmt::format("{:.17g}", value) : fmt::format("{:.9g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!wide) text += "f";
  return text[0] == '-' ? "(" + text + ")" : text;
}

std::string integer_text(std::int64_t value, DType dtype) {
  switch (dtype) {
    case DType::kPred:
      return value != 0 ? "true" : "false";
    case DType::kS64:
      if (value == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807LL - 1)";
      return value < 0 ? fmt::format("({}LL)", value) : fmt::format("{}LL", value);
    case DType::kU64:
      return fmt::format("{}ull", static_cast<std::uint64_t>(value));
    case DType::kU32:
      return fmt::format("{}u", static_cast<std::uint32_t>(value));
    case DType::kS32:
      if (value == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
      return value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
    default:
      return fmt::format("({})({})", value_type(dtype), value);
  }
}

std::string literal_text(const Literal& literal) {
  const DType dtype = literal.shape.dtype;
  if (is_floating(dtype) && byte_size(dtype) == 1)  // moved as bytes
    return integer_text(*literal.data<std::uint8_t>(), DType::kU8);
  if (is_floating(dtype)) return float_text(literal.get_double(0), dtype);
  return integer_text(literal.get_int(0), dtype);
}

namespace {

std::pair<std::int64_t, std::int64_t> integer_limits(DType dtype) {
  if (dtype == DType::kPred) return {0, 1};
  const int bits = byte_size(dtype) * 8;
  if (is_signed_integer(dtype)) {
    const std::int64_t high =
        bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (bits - 1)) - 1;
    return {-high - 1, high};
  }
  // u64's largest value has the bits of -1.
  return {0, bits == 64 ? -1 : (std::int64_t{1} << bits) - 1};
}

/// As a double for floats; as the bits for integers.
double neutral_float(Op reducer) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (reducer) {
    case Op::kMultiply:
      return 1;
    case Op::kMaximum:
      return -kInfinity;
    case Op::kMinimum:
      return kInfinity;
    default:
      return 0;
  }
}

std::int64_t neutral_integer(Op reducer, DType dtype) {
  switch (reducer) {
    case Op::kMultiply:
      return 1;
    case Op::kMaximum:
      return integer_limits(dtype).first;
    case Op::kMinimum:
      return integer_limits(dtype).second;
    case Op::kAnd:
      return dtype == DType::kPred ? 1 : (is_signed_integer(dtype) ? -1 : integer_limits(dtype).second);
    default:
      return 0;
  }
}

}  // namespace

std::string neutral_text(Op reducer, DType dtype) {
  if (is_floating(dtype)) return float_text(neutral_float(reducer), dtype);
  return integer_text(neutral_integer(reducer, dtype), dtype);
}

bool is_neutral(Op reducer, const Literal& literal) {
  if (is_floating(literal.shape.dtype)) return literal.get_double(0) == neutral_float(reducer);
  return literal.get_int(0) == neutral_integer(reducer, literal.shape.dtype);
}

std::string_view reducer_name(Op reducer) {
  switch (reducer) {
    case Op::kAdd:
      return "SwAdd";
    case Op::kMultiply:
      return "SwMultiply";
    case Op::kMaximum:
      return "SwMaximum";
    case Op::kMinimum:
      return "SwMinimum";
    case Op::kAnd:
      return "SwAnd";
    case Op::kOr:
      return "SwOr";
    case Op::kXor:
      return "SwXor";
    default:
      SW_CHECK(false, "{} does not reduce", def(reducer).name);
  }
}

std::string accumulate_text(Op reducer, const std::string& a, const std::string& b) {
  switch (reducer) {
    case Op::kAdd:
      return fmt::format("{} += {}", a, b);
    case Op::kMultiply:
      return fmt::format("{} *= {}", a, b);
    case Op::kMaximum:
      return fmt::format("{0} = sw_max({0}, {1})", a, b);
    case Op::kMinimum:
      return fmt::format("{0} = sw_min({0}, {1})", a, b);
    case Op::kAnd:
      return fmt::format("{} &= {}", a, b);
    case Op::kOr:
      return fmt::format("{} |= {}", a, b);
    default:
      SW_CHECK(reducer == Op::kXor, "{} does not reduce", def(reducer).name);
      return fmt::format("{} ^= {}", a, b);
  }
}

namespace {

/// C++ keywords an op may be called, and functions that CUDA declares.
bool is_known(const std::string& name) {
  static const std::unordered_set<std::string> names = {
      "auto",          "bool",         "break",        "case",
      "char",          "class",        "const",        "continue",
      "default",       "delete",       "do",           "double",
      "else",          "enum",         "extern",       "float",
      "for",           "goto",         "if",           "inline",
      "int",           "long",         "new",          "not",
      "and",           "or",           "xor",          "operator",
      "private",       "public",       "return",       "short",
      "signed",        "sizeof",       "static",       "struct",
      "switch",        "this",         "throw",        "true",
      "false",         "try",          "typedef",      "union",
      "unsigned",      "using",        "virtual",      "void",
      "while",         "asm",          "compl",        "volatile",
      "register",      "template",     "typename",     "catch",
      "friend",        "export",       "namespace",    "noexcept",
      "nullptr",       "mutable",      "explicit",     "alignas",
      "alignof",       "typeid",       "bitand",       "bitor",
      "not_eq",        "and_eq",       "or_eq",        "xor_eq",
      "decltype",      "wchar_t",      "constexpr",    "protected",
      "const_cast",    "static_cast",  "dynamic_cast", "reinterpret_cast",
      "static_assert", "thread_local", "char16_t",     "char32_t",
      "char8_t",       "concept",      "requires",     "co_await",
      "co_return",     "co_yield",     "consteval",    "constinit",
      "exp",           "expf",         "log",          "logf",
      "tanh",          "tanhf",        "pow",          "powf",
      "sqrt",          "sqrtf",        "rsqrt",        "rsqrtf",
      "erf",           "erff",         "sin",          "sinf",
      "cos",           "cosf",         "tan",          "tanf",
      "cbrt",          "cbrtf",        "floor",        "floorf",
      "ceil",          "ceilf",        "fabs",         "fabsf",
      "rint",          "rintf",        "round",        "roundf",
      "fmod",          "fmodf",        "atan2",        "atan2f",
      "expm1",         "expm1f",       "log1p",        "log1pf",
      "abs",           "min",          "max"};
  return names.contains(name);
}

}  // namespace

Identifiers identifiers(std::string_view text) {
  const auto goes_on = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  Identifiers result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && goes_on(text[end])) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    const bool member = at > 0 && text[at - 1] == '.';
    if (!member && std::isdigit(static_cast<unsigned char>(text[at])) == 0)
      result.emplace(text.substr(at, end - at));
    at = end;
  }
  return result;
}

bool Namer::is_reserved(const std::string& name) const {
  if (is_known(name) || name.starts_with("sw_") || name.starts_with("Sw") || name.starts_with("SW_"))
    return true;
  return printed_ != nullptr && printed_->contains(name);
}

std::string Namer::make(std::string_view op_name, std::string_view prefix, std::string_view suffix) {
  if (canonical_) return fmt::format("{}{}", prefix, next_++);
  std::string base;
  for (char c : op_name) base += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base = "v_" + base;
  if (base.starts_with("__")) base = "v" + base;
  base += suffix;
  if (is_reserved(base)) base += '_';
  if (taken_.insert(base).second) return base;
  int& n = last_.emplace(base, 1).first->second;
  std::string unique;
  do unique = fmt::format("{}_{}", base, ++n);
  while (!taken_.insert(unique).second);
  return unique;
}

void Writer::line(std::string_view text) {
  if (!text.empty() && text[0] != '#') text_.append(depth_ * 2, ' ');
  text_ += text;
  text_ += '\n';
}

void Writer::open(std::string_view text) {
  open_.push_back(!text.empty());
  if (text.empty()) return;
  line(fmt::format("{} {{", text));
  ++depth_;
}

void Writer::block() {
  line("{");
  open_.push_back(true);
  ++depth_;
}

void Writer::close(std::string_view after) {
  const bool braces = open_.back();
  open_.pop_back();
  if (!braces) return;
  --depth_;
  line(fmt::format("}}{}", after));
}

}  // namespace stitchwork
