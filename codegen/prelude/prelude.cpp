#include "codegen/prelude/prelude.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/kernel.h"

namespace stitchwork {
namespace {

using Names = std::set<std::string, std::less<>>;

/// A definition of the prelude with the comments above it, or a line of a conditional.
struct Item {
  enum Kind : std::uint8_t { kDefinition, kIf, kElse, kEndIf } kind = kDefinition;
  std::string text;
  std::string name;  ///< of a definition; overloads and specialisations share it
  Names uses;        ///< identifiers of the text
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view without_comment(std::string_view line) { return line.substr(0, line.find("//")); }

/// Identifiers and numbers of CUDA C++, comments left out.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::string_view code = without_comment(line);
    for (std::size_t i = 0; i < code.size();) {
      std::size_t end = i;
      while (end < code.size() && is_word(code[end])) ++end;
      if (end > i) words.push_back(code.substr(i, end - i));
      i = end + 1;
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return words;
}

std::string_view word_after(std::string_view text, std::string_view keyword) {
  const std::size_t at = text.find(keyword);
  if (at == std::string_view::npos) return {};
  const std::vector<std::string_view> words = words_of(text.substr(at + keyword.size()));
  return words.empty() ? std::string_view{} : words.front();
}

/// What a definition defines: a macro, a function, a type, a variable; of a macro's use at the top level what
/// the macro defines.
std::string name_of(std::string_view code, const std::vector<Item>& before) {
  if (code.starts_with("#define ")) return std::string(word_after(code, "#define "));
  const std::string_view head = code.substr(0, code.find_first_of("{;"));
  if (const std::size_t function = head.find("SW_FN "); function != std::string_view::npos) {
    const std::size_t parameters = head.find('(', function);
    return std::string(words_of(head.substr(0, parameters)).back());
  }
  for (const std::string_view type : {"struct ", "enum "})
    if (const std::string_view name = word_after(head, type); !name.empty()) return std::string(name);
  const std::string_view first = words_of(head).front();
  for (const Item& item : before)
    if (item.name == first) return std::string(word_after(item.text, "struct "));
  return std::string(words_of(head).back());
}

Item::Kind kind_of(std::string_view line) {
  if (line.starts_with("#if")) return Item::kIf;
  if (line.starts_with("#el")) return Item::kElse;
  return line.starts_with("#endif") ? Item::kEndIf : Item::kDefinition;
}

/// One item each: what ends where no brace is open.
std::vector<Item> items_of(std::string_view text) {
  std::vector<Item> items;
  Item item;
  std::string code;
  int depth = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    item.text.append(line).push_back('\n');
    const std::string_view bare = without_comment(line);
    if (bare.find_first_not_of(' ') == std::string_view::npos) continue;
    code.append(bare).push_back('\n');
    depth += static_cast<int>(std::count(bare.begin(), bare.end(), '{') -
                              std::count(bare.begin(), bare.end(), '}'));
    const bool directive = code.front() == '#';
    const char last = bare[bare.find_last_not_of(' ')];
    const bool ends = directive ? last != '\\' : depth == 0 && (last == ';' || last == '}' || last == ')');
    if (!ends) continue;
    item.kind = kind_of(code);
    if (item.kind == Item::kDefinition) item.name = name_of(code, items);
    for (const std::string_view word : words_of(code)) item.uses.emplace(word);
    items.push_back(std::move(item));
    item = {};
    code.clear();
    depth = 0;
  }
  return items;
}

constexpr std::string_view kFastMath = "#define SW_FAST_MATH 1  // approximations, no subnormal numbers\n";

const std::vector<Item>& items(bool fast_math) {
  static const std::vector<Item> precise = [] {
    std::string text;
    for (const std::string_view part : {prelude_clang(), prelude_clang_double(), prelude_common(),
                                        prelude_async(), prelude_bulk(), prelude_cluster(), prelude_double()})
      text += part;
    return items_of(text);
  }();
  static const std::vector<Item> fast = [] {
    std::vector<Item> all = precise;
    for (Item& faster : items_of(prelude_fast()))
      for (Item& item : all)
        if (item.name == faster.name) item = faster;
    return all;
  }();
  return fast_math ? fast : precise;
}

/// The names that `kernel` uses and what these are made of.
Names needed(std::string_view kernel, const std::vector<Item>& items) {
  Names names;
  std::vector<std::string_view> open = words_of(kernel);
  for (const Item& item : items)
    if (item.kind != Item::kDefinition) open.insert(open.end(), item.uses.begin(), item.uses.end());
  while (!open.empty()) {
    const std::string_view name = open.back();
    open.pop_back();
    if (!names.emplace(name).second) continue;
    for (const Item& item : items)
      if (item.name == name) open.insert(open.end(), item.uses.begin(), item.uses.end());
  }
  return names;
}

}  // namespace

std::string cuda_prelude(std::string_view kernel, bool fast_math) {
  const std::vector<Item>& all = items(fast_math);
  const Names names = needed(kernel, all);
  std::string text(fast_math ? kFastMath : "");
  std::vector<std::size_t> empty;  // of each open conditional: where it begins while nothing stands in it
  for (const Item& item : all) {
    if (item.kind == Item::kDefinition && !names.contains(item.name)) continue;
    if (item.kind == Item::kIf) empty.push_back(text.size());
    if (item.kind == Item::kDefinition) std::fill(empty.begin(), empty.end(), std::string::npos);
    text += item.text;
    if (item.kind != Item::kEndIf) continue;
    if (empty.back() != std::string::npos) text.resize(empty.back());
    empty.pop_back();
  }
  return text;
}

bool has_fast_math(std::string_view source) { return source.find(kFastMath) != std::string_view::npos; }

}  // namespace stitchwork
