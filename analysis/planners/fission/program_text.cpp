#include "analysis/planners/fission/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <unordered_set>

#include "core/base/at.h"

namespace stitchwork::fission {
namespace {

/// Of each window; beyond, so many are not counted one by one. A choice, not measured: a set of this size
/// takes some 10 MB and a tenth of a second.
constexpr std::int64_t kMostStates = 100'000;

std::string names_of(const Computation& computation, const Window& window, Mask set) {
  std::string text;
  for (Mask rest = set; rest != 0; rest &= rest - 1)
    text += (text.empty() ? "" : " ") + computation.node(window.ops[at(std::countr_zero(rest))]).name;
  return text;
}

std::string head(const Computation& computation, const WindowProgram& of, std::size_t number) {
  return fmt::format("window {}: {} to {}, {} primitives", number,
                     computation.node(of.window.ops.front()).name,
                     computation.node(of.window.ops.back()).name, of.window.size());
}

bool is_chosen(const WindowProgram& of, std::size_t candidate) {
  return std::ranges::binary_search(of.selection.chosen, static_cast<int>(candidate));
}

/// As names of columns in LP format may be.
std::string spelled(const std::string& name) {
  std::string text;
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text;
}

}  // namespace

std::optional<std::int64_t> states(const Window& window, std::int64_t most) {
  std::unordered_set<Mask> known = {0};
  std::vector<Mask> open = {0};
  while (!open.empty()) {
    const Mask state = open.back();
    open.pop_back();
    for (int i = 0; i < window.size(); ++i) {
      if (has(state, i) || (window.ancestors[at(i)] & ~only(i) & ~state) != 0) continue;
      if (!known.insert(state | only(i)).second) continue;
      if (static_cast<std::int64_t>(known.size()) > most) return std::nullopt;
      open.push_back(state | only(i));
    }
  }
  return static_cast<std::int64_t>(known.size());
}

std::string primitives_text(const Computation& computation, const std::vector<WindowProgram>& programs) {
  std::string text;
  for (std::size_t w = 0; w < programs.size(); ++w) {
    const Window& window = programs[w].window;
    const auto count = states(window, kMostStates);
    text += fmt::format("{}, {} execution states\n", head(computation, programs[w], w),
                        count ? fmt::to_string(*count) : fmt::format("more than {}", kMostStates));
    for (int i = 0; i < window.size(); ++i) {
      const Node& node = computation.node(window.ops[at(i)]);
      const std::string reads = names_of(computation, window, window.producers[at(i)]);
      text += fmt::format("  {} {}{}{}\n", node.name, to_text(node.shape),
                          reads.empty() ? "" : ", reads " + reads,
                          has(window.required, i) ? ", needed outside" : "");
    }
  }
  return text;
}

std::string candidates_text(const Computation& computation, const std::vector<WindowProgram>& programs) {
  std::string text;
  for (std::size_t w = 0; w < programs.size(); ++w) {
    const WindowProgram& of = programs[w];
    text += fmt::format("{}, {} candidates, {} chosen: {:.3f} us (modelled){}\n", head(computation, of, w),
                        of.candidates.size(), of.selection.chosen.size(), of.selection.us,
                        of.selection.optimal ? ", the least of these"
                                             : fmt::format(", none below {:.3f} us", of.selection.bound_us));
    for (std::size_t k = 0; k < of.candidates.size(); ++k) {
      const Candidate& candidate = of.candidates[k];
      const std::string reads = names_of(computation, of.window, candidate.inputs);
      text += fmt::format("{} {:>9.3f} us  {}{}\n", is_chosen(of, k) ? "*" : " ", candidate.us,
                          names_of(computation, of.window, candidate.ops),
                          reads.empty() ? "" : "; reads " + reads);
    }
  }
  return text;
}

std::string program_text(const Computation& computation, const std::vector<WindowProgram>& programs) {
  std::string text;
  for (std::size_t w = 0; w < programs.size(); ++w) {
    const WindowProgram& of = programs[w];
    text += fmt::format("\\ {}; nanoseconds, modelled\n", head(computation, of, w));
    std::vector<std::string> names;
    for (std::size_t k = 0; k < of.candidates.size(); ++k) {
      const Candidate& candidate = of.candidates[k];
      names.push_back(
          fmt::format("u{}_{}", k, spelled(computation.node(of.window.ops[at(candidate.sink)]).name)));
      text += fmt::format("\\ {}: {}\n", names.back(), names_of(computation, of.window, candidate.ops));
    }
    Mask read = 0;
    for (const Candidate& candidate : of.candidates) read |= candidate.inputs;
    for (int i = 0; i < of.window.size(); ++i)
      if (has(read, i))
        names.push_back(fmt::format("y{}_{}", i, spelled(computation.node(of.window.ops[at(i)]).name)));
    text += ilp::to_lp(program(of.window, of.candidates), names);
  }
  return text;
}

}  // namespace stitchwork::fission
