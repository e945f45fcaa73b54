#include "simulator/ptx/token_reader.h"

#include <limits>

namespace stitchwork::ptx {

void TokenReader::fail(const Token& t, std::string message, std::string hint) const {
  throw Error(lex_.file(), t.line, t.column, std::move(message), std::move(hint));
}

Token TokenReader::expect(char c) {
  Token t = lex_.next();
  if (!t.is(c)) {
    if (t.kind == Token::Kind::kEnd) fail(t, "the file ends in the middle", fmt::format("expected '{}'", c));
    fail(t, fmt::format("expected '{}', found '{}'", c, t.text));
  }
  return t;
}

Token TokenReader::word() {
  Token t = lex_.next();
  if (t.kind == Token::Kind::kEnd) fail(t, "the file ends in the middle", "expected a name");
  if (t.kind != Token::Kind::kWord) fail(t, fmt::format("expected a name, found '{}'", t.text));
  return t;
}

std::int64_t TokenReader::integer() {
  const bool negative = accept('-');
  Token t = lex_.next();
  if (t.kind != Token::Kind::kInteger) fail(t, fmt::format("expected an integer, found '{}'", t.text));
  if (t.bits > std::numeric_limits<std::uint32_t>::max())
    fail(t, fmt::format("{} does not fit 32 bits", t.text));
  return negative ? -static_cast<std::int64_t>(t.bits) : static_cast<std::int64_t>(t.bits);
}

bool TokenReader::accept(char c) {
  if (!lex_.peek().is(c)) return false;
  lex_.next();
  return true;
}

bool TokenReader::accept(std::string_view w) {
  if (!lex_.peek().is(w)) return false;
  lex_.next();
  return true;
}

void TokenReader::skip_to_semicolon() {
  while (!lex_.peek().is(';')) {
    if (lex_.peek().kind == Token::Kind::kEnd)
      fail(lex_.peek(), "the file ends in the middle", "expected ';'");
    lex_.next();
  }
  lex_.next();
}

void TokenReader::skip_line(int line) {
  while (lex_.peek().kind != Token::Kind::kEnd && lex_.peek().line == line) lex_.next();
}

void TokenReader::skip_braces() {
  int depth = 0;
  do {
    const Token t = lex_.next();
    if (t.kind == Token::Kind::kEnd) fail(t, "the file ends in the middle", "expected '}'");
    depth += t.is('{') ? 1 : t.is('}') ? -1 : 0;
  } while (depth > 0);
}

void TokenReader::skip_parentheses() {
  expect('(');
  while (!accept(')')) {
    if (lex_.peek().kind == Token::Kind::kEnd) fail(lex_.peek(), "the file ends in the middle");
    lex_.next();
  }
}

}  // namespace stitchwork::ptx
