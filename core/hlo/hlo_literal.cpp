#include "core/hlo/hlo_literal.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/graph/small_float.h"

namespace stitchwork {
namespace {

template <typename T>
void store(Literal& literal, std::int64_t i, T value) {
  std::memcpy(literal.bytes.data() + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

template <typename T>
T load(const Literal& literal, std::int64_t i) {
  T value;
  std::memcpy(&value, literal.bytes.data() + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// ---- reading ----

class LiteralReader {
 public:
  explicit LiteralReader(HloLexer& lexer) : lexer_(lexer) {}

  Literal read(const Shape& shape) {
    Literal literal;
    literal.shape = shape;
    literal.shape.minor_to_major.clear();
    // Every value takes a character and all but the last a comma: what the text cannot hold needs no memory.
    if (static_cast<std::uint64_t>(shape.elements_count()) / 2 > lexer_.remaining()) {
      lexer_.fail(
          lexer_.position(),
          fmt::format("a constant of {} values, and the text ends before as many", shape.elements_count()),
          "the file may be truncated");
    }
    literal.bytes.resize(static_cast<std::size_t>(shape.byte_size()));
    read_dimension(literal, 0);
    return literal;
  }

 private:
  void read_dimension(Literal& literal, std::size_t dimension) {
    lexer_.skip();
    const std::size_t at = lexer_.position();
    if (dimension == literal.shape.dims.size()) {
      if (lexer_.peek() == '{') {
        lexer_.fail(at, fmt::format("constant has more levels of braces than {} has dimensions",
                                    to_text(literal.shape)));
      }
      read_element(literal);
      ++next_;
      return;
    }
    if (!lexer_.accept("{"))
      lexer_.fail_expected("'{'", fmt::format("in a constant of shape {}", to_text(literal.shape)));
    if (lexer_.accept("...")) {
      lexer_.fail(
          at, "the values of this constant were left out of the file",
          "export it again with large constants printed (JAX: as_hlo_text(print_large_constants=True))");
    }
    const std::int64_t extent = literal.shape.dims[dimension];
    for (std::int64_t i = 0; i < extent; ++i) {
      if (i > 0 && !lexer_.accept(",")) wrong_count(literal, dimension, at, i);
      lexer_.skip();
      if (lexer_.peek() == '}') wrong_count(literal, dimension, at, i);
      read_dimension(literal, dimension + 1);
    }
    lexer_.skip();
    if (lexer_.peek() == ',') {
      lexer_.fail(lexer_.position(),
                  fmt::format("more than {} values in dimension {} of a constant of shape {}", extent,
                              dimension, to_text(literal.shape)));
    }
    lexer_.expect("}", "after the values of a constant");
  }

  [[noreturn]] void wrong_count(const Literal& literal, std::size_t dimension, std::size_t at,
                                std::int64_t found) {
    lexer_.skip();
    if (lexer_.peek() != '}') lexer_.fail_expected("',' or '}'", "in a constant");
    lexer_.fail(at, fmt::format("{} values in dimension {} of a constant of shape {}, expected {}", found,
                                dimension, to_text(literal.shape), literal.shape.dims[dimension]));
  }

  /// A number's characters: up to a comma, bracket or blank.
  std::string_view token() {
    lexer_.skip();
    const std::size_t start = lexer_.position();
    const std::string_view text = lexer_.number_text();
    if (text.empty()) lexer_.fail_expected("a value");
    token_start_ = start;
    return text;
  }

  void read_element(Literal& literal) {
    const DType type = literal.shape.dtype;
    if (type == DType::kC64 || type == DType::kC128) {
      read_complex(literal);
    } else if (type == DType::kPred) {
      const std::string_view text = token();
      if (text != "true" && text != "false" && text != "0" && text != "1") bad(text, type);
      store<std::uint8_t>(literal, next_, text == "true" || text == "1");
    } else if (is_integral(type)) {
      read_integer(literal, type);
    } else if (is_floating(type)) {
      read_float(literal, type);
    } else {
      lexer_.fail(lexer_.position(), fmt::format("{} has no constants", name(type)));
    }
  }

  void read_complex(Literal& literal) {
    lexer_.expect("(", "before a complex number");
    const auto read_part = [&](std::int64_t i) {
      if (literal.shape.dtype == DType::kC64) {
        store(literal, i, parse_float<float>(token(), DType::kF32));
      } else {
        store(literal, i, parse_float<double>(token(), DType::kF64));
      }
    };
    read_part(2 * next_);
    lexer_.expect(",", "between the parts of a complex number");
    read_part(2 * next_ + 1);
    lexer_.expect(")", "after a complex number");
  }

  void read_integer(Literal& literal, DType type) {
    const std::string_view text = token();
    const bool is_signed = is_signed_integer(type);
    const int bits = bit_width(type);
    std::int64_t value = 0;
    if (is_signed) {
      value = parse_integer<std::int64_t>(text, type);
      const std::int64_t high = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
      if (value > high || value < -high - 1) bad(text, type);
    } else {
      const auto wide = parse_integer<std::uint64_t>(text, type);
      if (wide > std::numeric_limits<std::uint64_t>::max() >> (64 - bits)) bad(text, type);
      value = static_cast<std::int64_t>(wide);
    }
    std::memcpy(literal.bytes.data() + next_ * byte_size(type), &value,
                static_cast<std::size_t>(byte_size(type)));
  }

  void read_float(Literal& literal, DType type) {
    const std::string_view text = token();
    switch (type) {
      case DType::kF64:
        return store(literal, next_, parse_float<double>(text, type));
      case DType::kF32:
        return store(literal, next_, parse_float<float>(text, type));
      case DType::kF16:
      case DType::kBF16: {
        const bool half = type == DType::kF16;
        const float wide = parse_float<float>(text, type);
        const std::uint16_t bits = half ? f32_to_f16(wide) : f32_to_bf16(wide);
        if (std::isfinite(wide) && !std::isfinite(half ? f16_to_f32(bits) : bf16_to_f32(bits)))
          bad(text, type);
        return store(literal, next_, bits);
      }
      default: {
        const SmallFloat format = small_float(type);
        const double wide = parse_float<double>(text, type);
        if (!fits(format, wide)) bad(text, type);
        return store(literal, next_, encode(format, wide));
      }
    }
  }

  template <typename T>
  T parse_integer(std::string_view text, DType type) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) bad(text, type);
    return value;
  }

  template <typename T>
  T parse_float(std::string_view text, DType type) {
    const bool negative = text.front() == '-';
    std::string_view digits = negative || text.front() == '+' ? text.substr(1) : text;
    if (digits.starts_with("nan(0x") && digits.ends_with(')'))
      return nan_payload<T>(text, digits, negative, type);
    T value{};
    auto format = std::chars_format::general;
    if (digits.starts_with("0x")) {
      digits.remove_prefix(2);
      format = std::chars_format::hex;
    }
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, format);
    if (error == std::errc::result_out_of_range) {
      // Too small for the type is zero; too large is an error.
      double wide = 0;
      const auto again = std::from_chars(digits.data(), digits.data() + digits.size(), wide, format);
      if (again.ec != std::errc() && digits.find("e-") == std::string_view::npos) bad(text, type);
      if (again.ec == std::errc() && wide > 1) bad(text, type);
      value = again.ec == std::errc() ? static_cast<T>(wide) : T{0};
    } else if (error != std::errc() || end != digits.data() + digits.size()) {
      bad(text, type);
    }
    return negative ? -value : value;
  }

  template <typename T>
  T nan_payload(std::string_view text, std::string_view digits, bool negative, DType type) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    Bits payload = 0;
    const std::string_view hex = digits.substr(6, digits.size() - 7);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), payload, 16);
    constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
    if (error != std::errc() || end != hex.data() + hex.size() || payload == 0 || payload >> kMantissa)
      bad(text, type);
    Bits bits = payload;
    const T infinity = std::numeric_limits<T>::infinity();
    Bits exponent;
    std::memcpy(&exponent, &infinity, sizeof(T));
    bits |= exponent;
    if (negative) bits |= Bits{1} << (8 * sizeof(T) - 1);
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }

  [[noreturn]] void bad(std::string_view text, DType type) {
    lexer_.fail(token_start_, fmt::format("'{}' is no value of {}", text, name(type)));
  }

  HloLexer& lexer_;
  std::int64_t next_ = 0;  ///< element, row-major
  std::size_t token_start_ = 0;
};

// ---- printing ----

/// The first of two precisions that reads back to the same value, as HLO prints floats.
template <typename T>
void print_float(std::string& out, T value, int few, int many) {
  char buffer[64];
  for (const int digits : {few, many}) {
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr;
    T back{};
    const auto [stop, error] = std::from_chars(buffer, end, back);
    if (digits == many || (error == std::errc() && stop == end && back == value)) {
      out.append(buffer, end);
      return;
    }
  }
}

template <typename T>
void print_native(std::string& out, T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  if (!std::isnan(value)) {
    return print_float(out, value, std::numeric_limits<T>::digits10, std::numeric_limits<T>::max_digits10);
  }
  Bits bits;
  std::memcpy(&bits, &value, sizeof(T));
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  const Bits payload = bits & ((Bits{1} << kMantissa) - 1);
  out += std::signbit(value) ? "-nan" : "nan";
  if (payload != Bits{1} << (kMantissa - 1)) fmt::format_to(std::back_inserter(out), "(0x{:x})", payload);
}

/// Narrow floats are printed with the digits that identify any of their values.
void print_narrow(std::string& out, double value, int digits) {
  if (std::isnan(value)) {
    out += std::signbit(value) ? "-nan" : "nan";
  } else {
    print_float(out, value, digits, digits);
  }
}

void print_element(std::string& out, const Literal& literal, std::int64_t i) {
  const DType type = literal.shape.dtype;
  switch (type) {
    case DType::kPred:
      if (literal.shape.rank() == 0) {
        out += load<std::uint8_t>(literal, i) ? "true" : "false";
      } else {
        out += load<std::uint8_t>(literal, i) ? '1' : '0';
      }
      return;
    case DType::kF64:
      return print_native(out, load<double>(literal, i));
    case DType::kF32:
      return print_native(out, load<float>(literal, i));
    case DType::kF16:
      return print_narrow(out, f16_to_f32(load<std::uint16_t>(literal, i)), 5);
    case DType::kBF16:
      return print_narrow(out, bf16_to_f32(load<std::uint16_t>(literal, i)), 4);
    case DType::kC64:
    case DType::kC128:
      out += '(';
      for (int part = 0; part < 2; ++part) {
        if (part == 1) out += ", ";
        if (type == DType::kC64) {
          print_native(out, load<float>(literal, 2 * i + part));
        } else {
          print_native(out, load<double>(literal, 2 * i + part));
        }
      }
      out += ')';
      return;
    default: {
      if (is_floating(type)) {
        const SmallFloat format = small_float(type);
        return print_narrow(out, decode(format, load<std::uint8_t>(literal, i)), format.decimal_digits);
      }
      std::uint64_t bits = 0;
      const int bytes = byte_size(type);
      std::memcpy(&bits, literal.bytes.data() + i * bytes, static_cast<std::size_t>(bytes));
      if (is_signed_integer(type)) {
        const int shift = 64 - 8 * bytes;
        fmt::format_to(std::back_inserter(out), "{}", static_cast<std::int64_t>(bits << shift) >> shift);
      } else {
        fmt::format_to(std::back_inserter(out), "{}", bits);
      }
    }
  }
}

void print_dimension(std::string& out, const Literal& literal, std::size_t dimension, std::int64_t& next,
                     std::vector<std::int64_t>& outer) {
  const auto& dims = literal.shape.dims;
  if (dimension == dims.size()) return print_element(out, literal, next++);
  const bool innermost = dimension + 1 == dims.size();
  // As HLO prints it: one dimension "{1, 2}", inner rows "{ 1, 2 }" but "{1}", and from rank 4 on a comment
  // that says where in the outer dimensions the block is.
  const bool padded = dims.size() > 1 && (!innermost || dims[dimension] > 1);
  out += '{';
  if (dims.size() > 3 && !innermost && dimension > 0) {
    fmt::format_to(std::back_inserter(out), " /*i{}={}*/", dimension - 1, outer.back());
  }
  if (padded) out += ' ';
  for (std::int64_t i = 0; i < dims[dimension]; ++i) {
    if (i > 0) out += ", ";
    outer.push_back(i);
    print_dimension(out, literal, dimension + 1, next, outer);
    outer.pop_back();
  }
  if (padded) out += ' ';
  out += '}';
}

}  // namespace

Literal read_literal(HloLexer& lexer, const Shape& shape) {
  if (!shape.is_tuple) return LiteralReader(lexer).read(shape);
  Literal literal;
  literal.shape = shape;
  lexer.expect("(", "before a tuple constant");
  for (std::size_t i = 0; i < shape.elements.size(); ++i) {
    if (i > 0) lexer.expect(",", "between the parts of a tuple constant");
    literal.elements.push_back(read_literal(lexer, shape.elements[i]));
  }
  lexer.expect(")", "after a tuple constant");
  return literal;
}

std::string to_text(const Literal& literal) {
  std::string out;
  if (literal.shape.is_tuple) {
    for (const Literal& element : literal.elements) out += (out.empty() ? "(" : ", ") + to_text(element);
    return (out.empty() ? "(" : out) + ")";
  }
  std::int64_t next = 0;
  std::vector<std::int64_t> outer;
  print_dimension(out, literal, 0, next, outer);
  return out;
}

}  // namespace stitchwork
