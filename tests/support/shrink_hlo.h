// The smallest part of a module that still fails, so that a failure of a random graph can be read.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace stitchwork::testing {

/// A module of one line an instruction, as random_hlo writes it; the last line of ENTRY is a tuple of
/// results.
class ShrinkableHlo {
 public:
  explicit ShrinkableHlo(const std::string& text) {
    std::istringstream in(text);
    bool entry = false;
    for (std::string line; std::getline(in, line);) {
      const std::size_t equals = line.find(" = ");
      if (line.starts_with("ENTRY"))
        entry = true;
      else if (!entry)
        before_ += line + "\n";
      else if (equals != std::string::npos)
        add(line, equals);
    }
  }

  std::size_t size() const { return lines_.size(); }
  std::size_t results() const { return results_.size(); }
  std::size_t ops() const {
    return static_cast<std::size_t>(
        std::count_if(lines_.begin(), lines_.end(), [](const Line& l) { return !l.is_source(); }));
  }

  /// Only what line `at` needs, with it as the one result.
  ShrinkableHlo cone(std::size_t at) const {
    ShrinkableHlo part = *this;
    part.results_ = {lines_[at].name};
    return part.needed();
  }
  ShrinkableHlo without_result(std::size_t at) const {
    ShrinkableHlo part = *this;
    part.results_.erase(part.results_.begin() + static_cast<std::ptrdiff_t>(at));
    return part.needed();
  }
  /// Line `at` becomes a parameter; what only it needed goes.
  ShrinkableHlo cut(std::size_t at) const {
    ShrinkableHlo part = *this;
    part.lines_[at].rest = "parameter(0)";
    part.lines_[at].operands.clear();
    return part.needed();
  }
  bool can_cut(std::size_t at) const { return !lines_[at].is_source(); }

  std::string text() const {
    std::string body;
    int parameters = 0;
    std::vector<std::string> shapes;
    for (const Line& l : lines_)
      body +=
          fmt::format("  {} = {} {}\n", l.name, l.shape,
                      l.rest.starts_with("parameter(") ? fmt::format("parameter({})", parameters++) : l.rest);
    for (const std::string& result : results_)
      shapes.push_back(
          std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.name == result; })->shape);
    return fmt::format("{}ENTRY main {{\n{}  ROOT result = ({}) tuple({})\n}}\n", before_, body,
                       fmt::join(shapes, ", "), fmt::join(results_, ", "));
  }

 private:
  struct Line {
    std::string name, shape, rest;
    std::vector<std::string> operands;
    bool is_source() const { return rest.starts_with("parameter(") || rest.starts_with("constant("); }
  };

  ShrinkableHlo needed() const {
    std::set<std::string> names(results_.begin(), results_.end());
    ShrinkableHlo part = *this;
    part.lines_.clear();
    for (auto l = lines_.rbegin(); l != lines_.rend(); ++l) {
      if (!names.contains(l->name)) continue;
      names.insert(l->operands.begin(), l->operands.end());
      part.lines_.insert(part.lines_.begin(), *l);
    }
    return part;
  }

  static std::vector<std::string> words(std::string text) {
    std::replace(text.begin(), text.end(), ',', ' ');
    std::istringstream in(text);
    std::vector<std::string> result;
    for (std::string word; in >> word;) result.push_back(word);
    return result;
  }

  void add(const std::string& line, std::size_t equals) {
    if (line.starts_with("  ROOT")) {
      const std::size_t open = line.rfind('(');
      results_ = words(line.substr(open + 1, line.rfind(')') - open - 1));
      return;
    }
    Line l;
    l.name = line.substr(2, equals - 2);
    const std::size_t space = line.find(' ', equals + 3);
    l.shape = line.substr(equals + 3, space - equals - 3);
    l.rest = line.substr(space + 1);
    const std::size_t open = l.rest.find('(');
    if (!l.is_source()) l.operands = words(l.rest.substr(open + 1, l.rest.find(')') - open - 1));
    lines_.push_back(std::move(l));
  }

  std::string before_;
  std::vector<Line> lines_;
  std::vector<std::string> results_;
};

/// The smallest part found that fails: of the smallest single result that does, or else of all results
/// without those that may go; then every value that can be given from outside is.
inline std::string shrink_hlo(const std::string& text, const std::function<bool(const std::string&)>& fails) {
  ShrinkableHlo smallest(text);
  std::vector<ShrinkableHlo> cones;
  for (std::size_t l = 0; l < smallest.size(); ++l) cones.push_back(smallest.cone(l));
  std::stable_sort(cones.begin(), cones.end(),
                   [](const ShrinkableHlo& a, const ShrinkableHlo& b) { return a.ops() < b.ops(); });
  const auto alone = std::find_if(cones.begin(), cones.end(), [&](const ShrinkableHlo& cone) {
    return cone.ops() > 0 && fails(cone.text());
  });
  if (alone != cones.end())
    smallest = *alone;
  else if (!fails(smallest.text()))
    return text;
  const auto shrink_to = [&](const ShrinkableHlo& part) {
    if (!fails(part.text())) return false;
    smallest = part;
    return true;
  };
  for (std::size_t r = smallest.results(); r-- > 0;)
    if (smallest.results() > 1) shrink_to(smallest.without_result(r));
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t l = smallest.size(); l-- > 0 && !smaller;)
      smaller = smallest.can_cut(l) && shrink_to(smallest.cut(l));
  }
  return smallest.text();
}

}  // namespace stitchwork::testing
