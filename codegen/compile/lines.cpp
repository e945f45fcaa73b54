#include "codegen/compile/lines.h"

#include <fmt/format.h>

#include <charconv>

#include "codegen/kernel.h"

namespace stitchwork {
namespace {

constexpr std::string_view kPreludeFile = "prelude.cu", kKernelFile = "kernel.cu";

std::string begins(std::string_view file) { return fmt::format("#line 1 \"{}\"\n", file); }

std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t,"), text.size());
  text.remove_prefix(begin);
  const std::size_t end = std::min(text.find_first_of(" \t,"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

int next_number(std::string_view& text) {
  const std::string_view word = next_word(text);
  int value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

/// The number `.file` gives the kernel's own text: compilers put a folder in front of its name.
int kernel_file(const std::vector<std::string_view>& lines) {
  const std::string ending = fmt::format("{}\"", kKernelFile);
  for (std::string_view line : lines) {
    if (next_word(line) != ".file") continue;
    const int number = next_number(line);
    const std::size_t name = line.rfind(ending);
    if (name != std::string_view::npos && name > 0 && (line[name - 1] == '/' || line[name - 1] == '"'))
      return number;
  }
  return -1;
}

/// Of a line that computes something.
bool is_instruction(std::string_view line) {
  const std::string_view word = next_word(line);
  return !word.empty() && word[0] != '.' && word[0] != '/' && word[0] != '{' && word[0] != '}' &&
         word[0] != ')' && word.back() != ':';
}

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string with_lines(std::string_view cuda, bool fast_math) {
  // PTX as old as clang writes it does not tell where a function was inlined. One without lines of its own
  // takes the caller's.
  return fmt::format(
      "{}#ifdef __clang__\n"
      "#pragma clang attribute push(__attribute__((nodebug)), apply_to = hasType(functionType))\n"
      "#endif\n"
      "{}\n"
      "#ifdef __clang__\n"
      "#pragma clang attribute pop\n"
      "#endif\n"
      "{}{}",
      begins(kPreludeFile), cuda_prelude(cuda, fast_math), begins(kKernelFile), cuda);
}

bool tells_lines(std::string_view source) { return source.starts_with(begins(kPreludeFile)); }

std::vector<int> source_lines(std::string_view ptx) {
  const std::vector<std::string_view> lines = lines_of(ptx);
  std::vector<int> result(lines.size(), 0);
  const int file = kernel_file(lines);
  int now = 0;
  bool inside = false;
  for (std::size_t i = 0; i < lines.size() && file > 0; ++i) {
    std::string_view line = lines[i];
    if (line.starts_with("{")) inside = true;
    if (line.starts_with("}")) inside = false, now = 0;
    if (!inside) continue;
    if (is_instruction(line)) {
      result[i] = now;
      continue;
    }
    if (next_word(line) != ".loc") continue;
    int in = next_number(line), at = next_number(line);
    const std::size_t call = line.find("inlined_at");
    if (in != file && call != std::string_view::npos) {
      line.remove_prefix(call + std::string_view("inlined_at").size());
      in = next_number(line), at = next_number(line);
    }
    // Where calls nest, or the PTX is too old to tell of them, the caller's line came before. Line 0 is what
    // a compiler says of what it made itself.
    if (in == file && at > 0) now = at;
  }
  return result;
}

}  // namespace stitchwork
