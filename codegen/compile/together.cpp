#include "codegen/compile/together.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "codegen/compile/lines.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace stitchwork {
namespace {

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The macros that a source leaves defined whatever the compiler, in their order.
std::vector<std::string_view> macros_of(std::string_view source) {
  constexpr std::string_view kDefine = "#define ";
  std::vector<std::string_view> macros;
  int depth = 0;
  for (const std::string_view line : lines_of(source)) {
    if (line.starts_with("#if")) ++depth;
    if (line.starts_with("#endif")) --depth;
    if (depth > 0 || !line.starts_with(kDefine)) continue;
    const std::string_view rest = line.substr(kDefine.size());
    macros.push_back(rest.substr(0, std::ranges::find_if_not(rest, is_of_name) - rest.begin()));
  }
  return macros;
}

/// Of a kernel's part of the PTX, without what it declares in front: whether it is one entry, all that it
/// names its own.
bool is_one_entry(std::string_view part, std::string_view name) {
  if (!part.starts_with(fmt::format(".visible .entry {}(", name))) return false;
  // What NVRTC writes at a line's beginning of an entry (its own output, versions 12 and 13).
  constexpr std::array kKnown{".visible .entry ", ".maxntid ",           ".minnctapersm ",  ".maxnreg ",
                              ".reqntid ",        ".reqnctapercluster ", ".explicitcluster"};
  int entries = 0;
  for (const std::string_view line : lines_of(part)) {
    if (!line.starts_with('.')) continue;
    if (std::ranges::none_of(kKnown, [&](std::string_view known) { return line.starts_with(known); }))
      return false;
    entries += line.starts_with(kKnown[0]) ? 1 : 0;
  }
  return entries == 1 && part.find("_Z") == std::string_view::npos;
}

/// Whether a text has the name, as a whole word and not as part of an opcode.
bool has_name(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const char behind = at + name.size() == text.size() ? ' ' : text[at + name.size()];
    if (!is_of_name(before) && before != '.' && !is_of_name(behind)) return true;
  }
  return false;
}

/// The words of declarations that may be names.
void add_names(std::string_view text, std::set<std::string_view>& names) {
  while (!text.empty()) {
    const auto begin = std::ranges::find_if(text, is_of_name);
    text.remove_prefix(static_cast<std::size_t>(begin - text.begin()));
    const auto end = std::ranges::find_if_not(text, is_of_name);
    const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) == 0) names.insert(word);
    text.remove_prefix(word.size());
  }
}

/// The name in shared memory that generated kernels declare, as they would alone; "" where the part uses
/// none, nullopt where the source declares it otherwise.
std::optional<std::string> shared_declaration(std::string_view part, std::string_view source) {
  if (!has_name(part, "shared")) return std::string();
  constexpr std::string_view kBefore = "extern __shared__ __align__(", kBehind = ") unsigned char shared[];";
  const std::size_t at = source.find(kBefore);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = source.substr(at + kBefore.size());
  const std::string_view number = rest.substr(0, rest.find(')'));
  if (!rest.substr(number.size()).starts_with(kBehind)) return std::nullopt;
  return fmt::format(".extern .shared .align {} .b8 shared[];\n", number);
}

/// Each `from` that is not followed by a digit.
std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (;;) {
    const std::size_t at = text.find(from);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    text.remove_prefix(at + from.size());
    const bool longer = !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0;
    result += longer ? from : to;
  }
}

/// What stands in front of a module, and in front of the entries that use it.
constexpr std::array kHead{"//", ".version ", ".target ", ".address_size "};
constexpr std::string_view kShared = ".extern .shared ";

bool is_head(std::string_view line) {
  return std::ranges::any_of(kHead, [&](const char* known) { return line.starts_with(known); });
}

}  // namespace

std::string entry_name(std::size_t kernel) { return fmt::format("sw_entry_{}", kernel); }

std::string joined(const std::vector<std::string_view>& sources, std::string_view entry) {
  std::string all;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    all += fmt::format("namespace sw_{} {{\n#define {} {}\n{}\n#undef {}\n", i, entry, entry_name(i),
                       sources[i], entry);
    for (const std::string_view macro : macros_of(sources[i])) all += fmt::format("#undef {}\n", macro);
    all += "}\n";
  }
  return all;
}

std::vector<std::optional<std::string>> separated(std::string_view ptx,
                                                  const std::vector<std::string_view>& sources,
                                                  std::string_view entry) {
  constexpr std::string_view kBegin = "\t// .globl\t";
  std::vector<std::optional<std::string>> result(sources.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sources.size(); ++i) names.push_back(entry_name(i));
  std::string head;
  std::size_t at = ptx.find(kBegin);
  if (at == std::string_view::npos) return result;
  for (const std::string_view line : lines_of(ptx.substr(0, at))) {
    if (!line.empty() && !is_head(line)) return result;
    head += fmt::format("{}\n", line);
  }
  std::set<std::string_view> foreign;  // names of the module's own: tables of the sine's, functions
  while (at != std::string_view::npos) {
    const std::size_t next = ptx.find(kBegin, at + kBegin.size());
    std::string_view part = ptx.substr(at, next == std::string_view::npos ? next : next - at);
    at = next;
    const std::string_view name = part.substr(kBegin.size(), part.find('\n') - kBegin.size());
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) return std::vector<std::optional<std::string>>(sources.size());
    const auto kernel = static_cast<std::size_t>(found - names.begin());
    part.remove_prefix(part.find('\n') + 1);
    // What stands in front of an entry is declared for all of them.
    while (part.starts_with(kShared) || part.starts_with('\n')) part.remove_prefix(part.find('\n') + 1);
    while (part.ends_with('\n')) part.remove_suffix(1);
    if (!is_one_entry(part, name)) {
      for (const std::string_view line : lines_of(part))
        if (line.starts_with('.') && !line.starts_with(".visible .entry ")) add_names(line, foreign);
      continue;
    }
    const auto shared = shared_declaration(part, sources[kernel]);
    if (!shared) continue;
    // Labels count the program's entries: $L__BB3_1 is the first of entry 3.
    std::string text = replaced(replaced(part, name, entry), fmt::format("$L__BB{}", kernel), "$L__BB0");
    if (text.find("sw_entry_") != std::string::npos) continue;
    result[kernel] = fmt::format("{}{}{}\n{}\n{}\n\n", head, kBegin, entry, *shared, text);
  }
  for (std::optional<std::string>& text : result)
    if (text && std::ranges::any_of(foreign, [&](std::string_view name) { return has_name(*text, name); }))
      text.reset();
  return result;
}

bool PtxTogether::add(std::string_view ptx) {
  std::string head, shared, entry;
  for (const std::string_view line : lines_of(ptx)) {
    if (entry.empty() && line.starts_with(kShared))
      shared += fmt::format("{}\n", line);
    else if (entry.empty() && is_head(line))
      head += line.starts_with("//") ? std::string() : fmt::format("{}\n", line);
    else if (!entry.empty() || line.starts_with('.'))
      entry += fmt::format("{}\n", line);
  }
  if (!is_one_entry(entry, entry_)) return false;
  if (kernels_ > 0 && head != head_) return false;
  if (!shared.empty() && !shared_.empty() && shared != shared_) return false;
  head_ = head;
  if (shared_.empty()) shared_ = shared;
  const std::size_t parameters = entry.find('(');
  entries_ += fmt::format(".visible .entry {}{}", entry_name(kernels_++), entry.substr(parameters));
  return true;
}

}  // namespace stitchwork
