#include "core/base/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace stitchwork {

std::string with_commas(long long value) {
  std::string digits = fmt::to_string(value < 0 ? -value : value);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), ",");
  return (value < 0 ? "-" : "") + digits;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string counted(long long count, const char* one) {
  const std::string_view word = one;
  const bool hisses =
      word.ends_with("nch") || word.ends_with("tch") || word.ends_with("s") || word.ends_with("x");
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : hisses ? "es" : "s");
}

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }, '?');
  return text;
}

std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("%+,-./:=@_").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace stitchwork
