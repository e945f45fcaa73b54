// A cursor over HLO text: characters to words, numbers, strings, shapes and verbatim values. Used by the
// reader only; the grammar of modules and instructions is in hlo_parser.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/shape.h"

namespace stitchwork {

class HloLexer {
 public:
  HloLexer(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  /// Skips blanks, line ends and comments (/* */ and //).
  void skip();
  /// The same, but stops before the end of the line.
  void skip_in_line();

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::size_t position() const { return at_; }
  void go_to(std::size_t position) { at_ = position; }

  /// Each of these skips blanks and comments first (line ends too).
  bool accept(std::string_view token);
  void expect(std::string_view token, std::string_view where);
  /// Letters, digits, '_', '.', '-'; empty if the next character is none of these.
  std::string_view word();
  /// A word after an optional %. `what` names it in the message if there is none.
  std::string_view name(std::string_view what);
  std::int64_t integer(std::string_view what);
  /// The characters of a number, true, false, inf, nan or nan(0x1): up to a comma, bracket or blank.
  std::string_view number_text();
  /// A quoted string with its C escapes resolved.
  std::string quoted();
  /// "{1,0}" or "{}".
  std::vector<std::int64_t> integers(std::string_view what);
  Shape shape() { return shape(0); }
  /// Looks ahead: a shape comes next, not a name.
  bool shape_follows();
  /// Verbatim text of an attribute's value: up to a comma, a blank, a closing brace or the end of the line
  /// outside of any bracket or string. Brackets must balance.
  std::string_view raw_value();
  /// The rest of the line, without the line end.
  std::string_view rest_of_line();

  /// Line of a position. Cheap for ascending positions.
  int line_of(std::size_t position);
  int column_of(std::size_t position) const;
  const std::string& file() const { return file_; }
  /// Characters that are left.
  std::size_t remaining() const { return text_.size() - at_; }

  [[noreturn]] void fail(std::size_t position, std::string message, std::string hint = {});
  /// "expected WHAT, found X" at the cursor; says so if the text ends here.
  [[noreturn]] void fail_expected(std::string_view what, std::string_view where = {});

 private:
  Shape shape(int depth);
  Shape array_shape(std::size_t start, DType dtype);
  void layout(Shape& shape);
  void skip_balanced();
  void skip_string();

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::size_t line_position_ = 0;  ///< line_ is the line of this position
  int line_ = 1;
};

}  // namespace stitchwork
