// Tokens of PTX text. A word is an opcode with its modifiers, a name, a register or a directive.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stitchwork::ptx {

struct Token {
  enum class Kind : std::uint8_t { kEnd, kWord, kInteger, kFloat32, kFloat64, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string_view text;
  std::uint64_t bits = 0;  ///< value of a number
  int line = 1, column = 1;

  bool is(char c) const { return kind == Kind::kPunctuation && text[0] == c; }
  bool is(std::string_view word) const { return kind == Kind::kWord && text == word; }
};

class Lexer {
 public:
  Lexer(std::string_view text, std::string file);
  const Token& peek() const { return token_; }
  Token next();
  const std::string& file() const { return file_; }

 private:
  void advance();
  void skip_blank();
  void read_number();

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  Token token_;
};

}  // namespace stitchwork::ptx
