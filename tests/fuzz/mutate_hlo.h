// Edits of HLO text that mostly keep its form: bytes changed at random hardly ever get past the grammar.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace stitchwork::fuzz {

/// Words (names, numbers, types) and single characters, with the blanks in front of them.
inline std::vector<std::string> hlo_tokens(std::string_view text) {
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '%';
  };
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i])) != 0) ++i;
    if (i < text.size() && in_word(text[i]))
      while (i < text.size() && in_word(text[i])) ++i;
    else if (i < text.size())
      ++i;
    tokens.emplace_back(text.substr(begin, i - begin));
  }
  return tokens;
}

class HloMutator {
 public:
  HloMutator(std::string_view text, unsigned seed) : random_(seed), tokens_(hlo_tokens(text)) {}

  std::string mutated() {
    for (int edits = 1 + at(3); edits > 0 && !tokens_.empty(); --edits) edit();
    std::string text;
    for (const std::string& token : tokens_) text += token;
    return text;
  }

 private:
  int at(std::size_t size) { return static_cast<int>(random_() % size); }

  static std::string_view word(const std::string& token) {
    const std::size_t start = token.find_first_not_of(" \t\r\n");
    return start == std::string::npos ? std::string_view{} : std::string_view(token).substr(start);
  }
  static bool is_number(std::string_view word) {
    return !word.empty() && word.find_first_not_of("-0123456789") == std::string_view::npos;
  }

  /// [begin, end) of a line, or of what a pair of brackets around token `from` encloses.
  std::pair<int, int> range(int from) {
    int begin = from, end = from + 1;
    if (at(2) == 0) {
      while (begin > 0 && !tokens_[static_cast<std::size_t>(begin)].starts_with('\n')) --begin;
      while (end < std::ssize(tokens_) && !tokens_[static_cast<std::size_t>(end)].starts_with('\n')) ++end;
      return {begin, end};
    }
    int depth = 0;
    for (; end < std::ssize(tokens_) && end - begin < 200; ++end) {
      const std::string_view w = word(tokens_[static_cast<std::size_t>(end)]);
      if (w == "{" || w == "(" || w == "[") ++depth;
      if ((w == "}" || w == ")" || w == "]") && --depth <= 0) return {begin, end + 1};
    }
    return {from, from + 1};
  }

  void replace(std::size_t i, std::string_view by) {
    tokens_[i] = tokens_[i].substr(0, tokens_[i].size() - word(tokens_[i]).size()) + std::string(by);
  }

  void edit() {
    constexpr std::array kNumbers = {"0",
                                     "1",
                                     "-1",
                                     "2",
                                     "3",
                                     "7",
                                     "64",
                                     "65",
                                     "-2",
                                     "256",
                                     "2147483647",
                                     "4294967296",
                                     "1048577",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "1e39",
                                     "nan"};
    constexpr std::array kTypes = {"pred", "s4",  "s8",  "s32", "u8",   "u64",   "f8e5m2", "f16",
                                   "bf16", "f32", "f64", "c64", "c128", "token", "opaque"};
    const auto i = static_cast<std::size_t>(at(tokens_.size())),
               j = static_cast<std::size_t>(at(tokens_.size()));
    const std::string_view old = word(tokens_[i]);
    switch (at(8)) {
      case 0:
      case 1:
        if (is_number(old)) return replace(i, kNumbers[static_cast<std::size_t>(at(kNumbers.size()))]);
        if (op_from_name(old))
          return replace(i, op_table()[static_cast<std::size_t>(at(op_table().size()))].name);
        if (dtype_from_name(old)) return replace(i, kTypes[static_cast<std::size_t>(at(kTypes.size()))]);
        [[fallthrough]];
      case 2: {  // another word of the text, of the same kind where one is near
        for (std::size_t k = 0; k < tokens_.size(); ++k) {
          const std::string by(word(tokens_[(j + k) % tokens_.size()]));
          if (by != old && is_number(by) == is_number(old) &&
              op_from_name(by).has_value() == op_from_name(old).has_value())
            return replace(i, by);
        }
        return;
      }
      case 3:
        return std::swap(tokens_[i], tokens_[j]);
      case 4:
      case 5: {
        const auto [begin, end] = range(static_cast<int>(i));
        const std::vector<std::string> copy(tokens_.begin() + begin, tokens_.begin() + end);
        if (at(2) == 0)
          tokens_.erase(tokens_.begin() + begin, tokens_.begin() + end);
        else
          tokens_.insert(tokens_.begin() + static_cast<std::ptrdiff_t>(j), copy.begin(), copy.end());
        return;
      }
      default: {  // one range in place of another
        const auto [begin, end] = range(static_cast<int>(i));
        const std::vector<std::string> copy(tokens_.begin() + begin, tokens_.begin() + end);
        const auto [from, to] = range(static_cast<int>(j));
        tokens_.erase(tokens_.begin() + from, tokens_.begin() + to);
        tokens_.insert(tokens_.begin() + from, copy.begin(), copy.end());
      }
    }
  }

  std::mt19937 random_;
  std::vector<std::string> tokens_;
};

}  // namespace stitchwork::fuzz
