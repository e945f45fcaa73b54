// Tokens one after another, with what a grammar asks of them: errors with line and column where they differ.
#pragma once

#include "core/base/error.h"
#include "simulator/ptx/lexer.h"

namespace stitchwork::ptx {

class TokenReader {
 public:
  TokenReader(std::string_view text, std::string file) : lex_(text, std::move(file)) {}

 protected:
  [[noreturn]] void fail(const Token& t, std::string message, std::string hint = {}) const;
  Token expect(char c);
  Token word();
  /// A size, count or offset: none has more than 32 bits, signed or not (PTX ISA 5.3, 6.4.1).
  std::int64_t integer();
  bool accept(char c);
  bool accept(std::string_view w);
  void skip_to_semicolon();
  void skip_line(int line);
  void skip_braces();
  void skip_parentheses();

  Lexer lex_;
};

}  // namespace stitchwork::ptx
