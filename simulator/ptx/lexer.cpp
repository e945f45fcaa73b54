#include "simulator/ptx/lexer.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "core/base/error.h"

namespace stitchwork::ptx {
namespace {

bool word_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool word_char(char c) { return word_start(c) || std::isdigit(static_cast<unsigned char>(c)); }

}  // namespace

Lexer::Lexer(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
  while (!text_.empty() && text_.back() == '\0') text_.remove_suffix(1);
  advance();
}

Token Lexer::next() {
  Token t = token_;
  advance();
  return t;
}

void Lexer::skip_blank() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      line_start_ = ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
      at_ += 2;
      while (at_ < text_.size() && !(text_[at_] == '*' && at_ + 1 < text_.size() && text_[at_ + 1] == '/')) {
        if (text_[at_] == '\n') {
          ++line_;
          line_start_ = at_ + 1;
        }
        ++at_;
      }
      at_ = std::min(at_ + 2, text_.size());
    } else {
      return;
    }
  }
}

void Lexer::read_number() {
  const std::size_t begin = at_;
  const char second = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
  auto take = [&](auto accept) {
    while (at_ < text_.size() && accept(static_cast<unsigned char>(text_[at_]))) ++at_;
  };
  auto is_hex = [](unsigned char c) { return std::isxdigit(c) != 0; };
  const char* last = text_.data() + text_.size();
  if (text_[at_] == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    at_ += 2;
    take(is_hex);
    const bool single = second == 'f' || second == 'F';
    const auto result = std::from_chars(text_.data() + begin + 2, text_.data() + at_, token_.bits, 16);
    if (result.ec != std::errc() || at_ - begin - 2 != (single ? 8u : 16u)) {
      throw Error(
          file_, token_.line, token_.column, "malformed floating-point constant",
          single ? "0f is followed by 8 hexadecimal digits" : "0d is followed by 16 hexadecimal digits");
    }
    token_.kind = single ? Token::Kind::kFloat32 : Token::Kind::kFloat64;
  } else {
    int base = 10;
    if (text_[at_] == '0' && (second == 'x' || second == 'X')) {
      base = 16;
      at_ += 2;
    } else if (text_[at_] == '0' && (second == 'b' || second == 'B')) {
      base = 2;
      at_ += 2;
    } else if (text_[at_] == '0' && std::isdigit(static_cast<unsigned char>(second))) {
      const std::size_t behind = text_.find_first_not_of("0123456789", at_);
      if (behind == text_.npos || (text_[behind] != '.' && text_[behind] != 'e' && text_[behind] != 'E'))
        base = 8;  // PTX ISA 4.5.1
    }
    auto result = std::from_chars(text_.data() + at_, last, token_.bits, base);
    if (result.ec != std::errc()) throw Error(file_, token_.line, token_.column, "malformed number");
    std::size_t end = static_cast<std::size_t>(result.ptr - text_.data());
    token_.kind = Token::Kind::kInteger;
    if (base == 10 && end < text_.size() && (text_[end] == '.' || text_[end] == 'e' || text_[end] == 'E')) {
      double value = 0;
      result = std::from_chars(text_.data() + at_, last, value);
      token_.bits = std::bit_cast<std::uint64_t>(value);
      token_.kind = Token::Kind::kFloat64;
      end = static_cast<std::size_t>(result.ptr - text_.data());
    }
    at_ = end;
    if (at_ < text_.size() && text_[at_] == 'U') ++at_;
  }
  token_.text = text_.substr(begin, at_ - begin);
}

void Lexer::advance() {
  skip_blank();
  token_ = Token{};
  token_.line = line_;
  token_.column = static_cast<int>(at_ - line_start_) + 1;
  if (at_ >= text_.size()) return;
  const char c = text_[at_];
  const std::size_t begin = at_;
  if (std::isdigit(static_cast<unsigned char>(c))) {
    read_number();
  } else if (word_start(c)) {
    // Directives and types may stand side by side: ".reg.v4.u16" is three words.
    const auto ends = [&] { return c == '.' && at_ > begin && text_[at_] == '.'; };
    while (at_ < text_.size() && !ends() &&
           (word_char(text_[at_]) || (text_[at_] == ':' && at_ + 2 < text_.size() && text_[at_ + 1] == ':' &&
                                      word_char(text_[at_ + 2])))) {
      at_ += text_[at_] == ':' ? 2 : 1;
    }
    token_.kind = Token::Kind::kWord;
    token_.text = text_.substr(begin, at_ - begin);
  } else if (c == '"') {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') ++at_;
    token_.kind = Token::Kind::kString;
    token_.text = text_.substr(begin + 1, at_ - begin - 1);
    if (at_ < text_.size()) ++at_;
  } else {
    ++at_;
    token_.kind = Token::Kind::kPunctuation;
    token_.text = text_.substr(begin, 1);
  }
}

}  // namespace stitchwork::ptx
