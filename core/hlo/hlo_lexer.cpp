#include "core/hlo/hlo_lexer.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/suggest.h"

namespace stitchwork {
namespace {

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-';
}

/// No compiler makes more; they bound the recursion over shapes and constants.
constexpr int kMaxTupleDepth = 64, kMaxRank = 64;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

void HloLexer::skip_in_line() {
  while (!at_end()) {
    if (is_blank(peek())) {
      ++at_;
    } else if (text_.compare(at_, 2, "/*") == 0) {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) fail(at_, "comment is never closed", "add */");
      at_ = end + 2;
    } else if (text_.compare(at_, 2, "//") == 0) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

void HloLexer::skip() {
  skip_in_line();
  while (peek() == '\n') {
    ++at_;
    skip_in_line();
  }
}

bool HloLexer::accept(std::string_view token) {
  skip();
  if (text_.compare(at_, token.size(), token) != 0) return false;
  at_ += token.size();
  return true;
}

void HloLexer::expect(std::string_view token, std::string_view where) {
  if (!accept(token)) fail_expected(fmt::format("'{}'", token), where);
}

std::string_view HloLexer::word() {
  skip();
  const std::size_t start = at_;
  while (is_word_char(peek())) {
    if (text_.compare(at_, 2, "->") == 0) break;
    ++at_;
  }
  return text_.substr(start, at_ - start);
}

std::string_view HloLexer::name(std::string_view what) {
  accept("%");
  const std::string_view result = word();
  if (result.empty()) fail_expected(what);
  return result;
}

std::int64_t HloLexer::integer(std::string_view what) {
  skip();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) fail(at_, fmt::format("{} does not fit 64 bits", what));
  if (error != std::errc()) fail_expected(what);
  at_ = static_cast<std::size_t>(end - text_.data());
  return value;
}

std::string_view HloLexer::number_text() {
  skip();
  const std::size_t start = at_;
  while (is_word_char(peek()) || peek() == '+') ++at_;
  if (peek() == '(' && text_.substr(start, at_ - start).ends_with("nan")) skip_balanced();
  return text_.substr(start, at_ - start);
}

std::string HloLexer::quoted() {
  expect("\"", "before a string");
  const std::size_t start = at_;
  std::string out;
  while (peek() != '"') {
    if (at_end() || peek() == '\n') fail(start - 1, "string is never closed", "add \" before the line ends");
    if (peek() != '\\') {
      out += text_[at_++];
      continue;
    }
    ++at_;
    const char c = peek();
    if (c >= '0' && c <= '7') {
      int value = 0;
      for (int digits = 0; digits < 3 && peek() >= '0' && peek() <= '7'; ++digits) {
        value = value * 8 + (text_[at_++] - '0');
      }
      out += static_cast<char>(value);
      continue;
    }
    ++at_;
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
  }
  ++at_;
  return out;
}

std::vector<std::int64_t> HloLexer::integers(std::string_view what) {
  std::vector<std::int64_t> out;
  expect("{", fmt::format("before the numbers of {}", what));
  if (accept("}")) return out;
  do out.push_back(integer(what));
  while (accept(","));
  expect("}", fmt::format("after the numbers of {}", what));
  return out;
}

bool HloLexer::shape_follows() {
  skip();
  if (peek() == '(') return true;
  const std::size_t start = at_;
  const bool bracket = !word().empty() && peek() == '[';
  at_ = start;
  return bracket;
}

Shape HloLexer::shape(int depth) {
  skip();
  const std::size_t start = at_;
  if (accept("(")) {
    if (depth == kMaxTupleDepth) fail(start, fmt::format("tuples nest deeper than {}", kMaxTupleDepth));
    std::vector<Shape> elements;
    if (!accept(")")) {
      do elements.push_back(shape(depth + 1));
      while (accept(","));
      expect(")", "after a tuple's shapes");
    }
    return Shape::tuple(std::move(elements));
  }
  const std::string_view type = word();
  if (type.empty()) fail_expected("a shape");
  const std::optional<DType> dtype = dtype_from_name(type);
  if (!dtype) {
    std::vector<std::string_view> known;
    for (int i = 0; i <= static_cast<int>(DType::kOpaque); ++i) {
      known.push_back(stitchwork::name(static_cast<DType>(i)));
    }
    const std::string_view near = closest(type, known);
    fail(start, fmt::format("unknown element type '{}'", type),
         near.empty() ? fmt::format("known are {}", fmt::join(known, ", "))
                      : fmt::format("did you mean {}?", near));
  }
  return array_shape(start, *dtype);
}

Shape HloLexer::array_shape(std::size_t start, DType dtype) {
  Shape result = Shape::array(dtype, {});
  expect("[", "after the element type");
  if (!accept("]")) {
    do {
      skip();
      if (peek() == '<' || peek() == '?') {
        fail(at_, "dimensions of dynamic size are not supported", "export the model with static shapes");
      }
      const std::size_t at = at_;
      result.dims.push_back(integer("a dimension"));
      if (result.dims.back() < 0) fail(at, "a dimension cannot be negative");
      if (result.rank() > kMaxRank) fail(start, fmt::format("an array of more than {} dimensions", kMaxRank));
    } while (accept(","));
    expect("]", "after the dimensions");
  }
  std::int64_t count = 1;
  for (const std::int64_t d : result.dims) {
    if (__builtin_mul_overflow(count, d, &count) || count > (std::int64_t{1} << 56)) {
      fail(start, "the shape has more elements than can be addressed");
    }
  }
  if (peek() == '{') layout(result);
  return result;
}

void HloLexer::layout(Shape& shape) {
  const std::size_t start = at_;
  ++at_;
  skip();
  std::vector<bool> seen(shape.dims.size());
  while (peek() != '}' && peek() != ':') {
    const std::size_t at = at_;
    const std::int64_t dim = integer("a dimension number of the layout");
    if (dim < 0 || dim >= shape.rank() || seen[static_cast<std::size_t>(dim)]) {
      fail(at, fmt::format("layout is no permutation of the {} dimensions", shape.rank()));
    }
    seen[static_cast<std::size_t>(dim)] = true;
    shape.minor_to_major.push_back(dim);
    if (!accept(",")) break;
  }
  skip();
  // Tiling, memory space and element size say how a device stores the array, not which values it has.
  if (peek() == ':') {
    const std::size_t at = at_;
    while (!at_end() && peek() != '}' && peek() != '\n') {
      if (peek() == '(') {
        skip_balanced();
      } else {
        ++at_;
      }
    }
    if (text_.substr(at, at_ - at).find("D(C") != std::string_view::npos) {
      fail(at, "sparse layouts are not supported", "export the model with dense arrays");
    }
  }
  expect("}", "after the layout");
  if (!shape.minor_to_major.empty() && shape.minor_to_major.size() != shape.dims.size()) {
    fail(start, fmt::format("layout names {} dimensions, the array has {}", shape.minor_to_major.size(),
                            shape.dims.size()));
  }
  if (shape.has_default_layout()) shape.minor_to_major.clear();
}

void HloLexer::skip_string() {
  const std::size_t start = at_++;
  while (peek() != '"') {
    if (at_end() || peek() == '\n') fail(start, "string is never closed", "add \" before the line ends");
    at_ += peek() == '\\' ? 2 : 1;
  }
  ++at_;
}

void HloLexer::skip_balanced() {
  const std::size_t start = at_;
  std::string open;
  do {
    const char c = peek();
    if (at_end()) fail(start, fmt::format("'{}' is never closed", text_[start]), "the file may be truncated");
    if (c == '"') {
      skip_string();
      continue;
    }
    if (text_.compare(at_, 2, "/*") == 0) {
      skip_in_line();
      continue;
    }
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : static_cast<char>(c + 2);
    if (c == ')' || c == ']' || c == '}') {
      if (open.back() != c) fail(at_, fmt::format("'{}' where '{}' was expected", c, open.back()));
      open.pop_back();
    }
    ++at_;
  } while (!open.empty());
}

std::string_view HloLexer::raw_value() {
  skip_in_line();
  const std::size_t start = at_;
  while (!at_end()) {
    const char c = peek();
    if (c == '"') {
      skip_string();
    } else if (c == '(' || c == '[' || c == '{') {
      skip_balanced();
    } else if (c == ',' || c == '}' || c == ')' || c == ']' || c == '\n' || is_blank(c) ||
               text_.compare(at_, 2, "//") == 0) {
      break;
    } else {
      ++at_;
    }
  }
  if (at_ == start) fail_expected("a value");
  return text_.substr(start, at_ - start);
}

std::string_view HloLexer::rest_of_line() {
  const std::size_t start = at_;
  at_ = std::min(text_.find('\n', at_), text_.size());
  std::size_t end = at_;
  while (end > start && is_blank(text_[end - 1])) --end;
  return text_.substr(start, end - start);
}

int HloLexer::line_of(std::size_t position) {
  if (position < line_position_) {
    line_position_ = 0;
    line_ = 1;
  }
  line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(line_position_),
                                       text_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
  line_position_ = position;
  return line_;
}

int HloLexer::column_of(std::size_t position) const {
  const std::size_t line_end = position == 0 ? std::string_view::npos : text_.rfind('\n', position - 1);
  return static_cast<int>(line_end == std::string_view::npos ? position + 1 : position - line_end);
}

void HloLexer::fail(std::size_t position, std::string message, std::string hint) {
  position = std::min(position, text_.size());
  throw Error(file_, line_of(position), column_of(position), std::move(message), std::move(hint));
}

void HloLexer::fail_expected(std::string_view what, std::string_view where) {
  const std::string expected = fmt::format("expected {}{}{}", what, where.empty() ? "" : " ", where);
  skip_in_line();
  if (at_end()) fail(at_, "the text ends here, " + expected, "the file is truncated: export it again");
  if (peek() == '\n') fail(at_, expected + " before the end of the line");
  std::size_t end = at_;
  while (end < text_.size() && is_word_char(text_[end]) && end - at_ < 40) ++end;
  if (end == at_) {  // one character, all its bytes
    ++end;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xc0U) == 0x80) ++end;
  }
  fail(at_, fmt::format("{}, found '{}'", expected, printable(std::string(text_.substr(at_, end - at_)))));
}

}  // namespace stitchwork
