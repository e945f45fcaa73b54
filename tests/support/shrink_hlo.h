// The smallest part of a module that still fails, so that a failure of a random graph can be read.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
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
  std::size_t ops() const {
    return static_cast<std::size_t>(
        std::count_if(lines_.begin(), lines_.end(), [](const Line& l) { return !l.is_source(); }));
  }

  /// Only what line `result` needs, with it as the one result.
  ShrinkableHlo cone(std::size_t result) const {
    std::set<std::string> needed{lines_[result].name};
    ShrinkableHlo part;
    part.before_ = before_;
    for (std::size_t l = result + 1; l-- > 0;) {
      if (!needed.contains(lines_[l].name)) continue;
      needed.insert(lines_[l].operands.begin(), lines_[l].operands.end());
      part.lines_.insert(part.lines_.begin(), lines_[l]);
    }
    return part;
  }

  /// Line `at` becomes a parameter; what only it needed goes. The last line is the result and stays.
  ShrinkableHlo cut(std::size_t at) const {
    ShrinkableHlo part = *this;
    part.lines_[at].rest = "parameter(0)";
    part.lines_[at].operands.clear();
    return part.cone(part.lines_.size() - 1);
  }
  bool can_cut(std::size_t at) const { return at + 1 < lines_.size() && !lines_[at].is_source(); }

  std::string text() const {
    std::string body;
    int parameters = 0;
    for (const Line& l : lines_)
      body +=
          fmt::format("  {} = {} {}\n", l.name, l.shape,
                      l.rest.starts_with("parameter(") ? fmt::format("parameter({})", parameters++) : l.rest);
    const Line& last = lines_.back();
    return fmt::format("{}ENTRY main {{\n{}  ROOT result = ({}) tuple({})\n}}\n", before_, body, last.shape,
                       last.name);
  }

 private:
  struct Line {
    std::string name, shape, rest;
    std::vector<std::string> operands;
    bool is_source() const { return rest.starts_with("parameter(") || rest.starts_with("constant("); }
  };
  ShrinkableHlo() = default;

  void add(const std::string& line, std::size_t equals) {
    Line l;
    l.name = line.substr(2, equals - 2);
    if (l.name.starts_with("ROOT")) return;
    const std::size_t space = line.find(' ', equals + 3);
    l.shape = line.substr(equals + 3, space - equals - 3);
    l.rest = line.substr(space + 1);
    const std::size_t open = l.rest.find('('), close = l.rest.find(')');
    std::string operands = l.rest.substr(open + 1, close - open - 1);
    std::replace(operands.begin(), operands.end(), ',', ' ');
    std::istringstream words(operands);
    if (!l.is_source())
      for (std::string word; words >> word;) l.operands.push_back(word);
    lines_.push_back(std::move(l));
  }

  std::string before_;
  std::vector<Line> lines_;
};

/// The smallest part found that fails: the first result whose own cone fails, then every value that can be
/// given from outside is. `text` itself where no part of it fails alone.
inline std::string shrink_hlo(const std::string& text, const std::function<bool(const std::string&)>& fails) {
  const ShrinkableHlo whole(text);
  std::vector<ShrinkableHlo> cones;
  for (std::size_t l = 0; l < whole.size(); ++l) cones.push_back(whole.cone(l));
  std::stable_sort(cones.begin(), cones.end(),
                   [](const ShrinkableHlo& a, const ShrinkableHlo& b) { return a.ops() < b.ops(); });
  for (const ShrinkableHlo& cone : cones) {
    if (cone.ops() == 0 || !fails(cone.text())) continue;
    ShrinkableHlo smallest = cone;
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (std::size_t l = smallest.size(); l-- > 0 && !smaller;) {
        if (!smallest.can_cut(l)) continue;
        const ShrinkableHlo candidate = smallest.cut(l);
        if (!fails(candidate.text())) continue;
        smallest = candidate;
        smaller = true;
      }
    }
    return smallest.text();
  }
  return text;
}

}  // namespace stitchwork::testing
