#include "analysis/planners/fusionstitching/ilp/template_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "analysis/facts/facts.h"
#include "analysis/plan/assemble.h"
#include "analysis/planners/fusionstitching/ilp/dimensions.h"
#include "core/base/arithmetic.h"
#include "core/base/error.h"
#include "core/base/suggest.h"

namespace stitchwork::fusionstitching {
namespace {

constexpr std::array kLevels = {Level::kGrid, Level::kWarp, Level::kCta, Level::kThread};

std::string attribute_text(const Attribute& attribute) {
  std::vector<std::string> parts;
  for (const Tiles& tiles : attribute)
    parts.push_back(tiles.count == 0 ? std::string(name(tiles.level))
                                     : fmt::format("{}_{}", name(tiles.level), tiles.count));
  return fmt::format("{}", fmt::join(parts, "-"));
}

/// Reads one template, keeping line and column.
class Parser {
 public:
  Parser(const Computation& computation, std::string_view text) : computation_(computation), text_(text) {}

  std::vector<OpSchedule> run() {
    std::vector<OpSchedule> result;
    for (skip_space(); at_ < text_.size(); skip_space()) result.push_back(schedule());
    if (result.empty())
      fail("a template has a schedule of at least one op", "for example 'exp.1[GRID,CTA];'");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const {
    throw Error("template", line_, column_, what, hint);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void advance() {
    if (text_[at_++] == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) advance();
  }
  bool accept(char c) {
    skip_space();
    if (peek() != c) return false;
    advance();
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail(fmt::format("expected '{}'{}", c,
                       at_ < text_.size() ? fmt::format(", found '{}'", peek()) : " before the end"));
  }
  template <typename Takes>
  std::string_view word(Takes takes) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && takes(text_[at_])) advance();
    return text_.substr(begin, at_ - begin);
  }

  OpSchedule schedule() {
    OpSchedule result;
    result.line = line_;
    result.column = column_;
    const std::string_view op =
        word([](char c) { return c != '[' && std::isspace(static_cast<unsigned char>(c)) == 0; });
    result.op = computation_.find(op);
    if (result.op == kNoNode) {
      std::vector<std::string_view> names;
      for (const Node& node : computation_.nodes) names.push_back(node.name);
      throw Error("template", result.line, result.column, fmt::format("no op is called '{}'", op),
                  fmt::format("close names: {}", fmt::join(nearest(std::string(op), names, 5), ", ")));
    }
    expect('[');
    std::vector<std::pair<int, int>> places;
    do {
      skip_space();
      places.emplace_back(line_, column_);
      result.dims.push_back(attribute());
    } while (accept(','));
    expect(']');
    result.shared = accept('S');
    expect(';');
    check_cover(result, places);
    return result;
  }

  Attribute attribute() {
    Attribute result{tiles()};
    while (accept('-')) result.push_back(tiles());
    for (const Tiles& tiles : result)
      if (result.size() > 1 && tiles.count == 0)
        fail("every level of a tiled dimension has its number of tiles", "for example GRID_128-WARP_2");
    return result;
  }

  Tiles tiles() {
    skip_space();
    const int line = line_, column = column_;
    const std::string_view level =
        word([](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    Tiles result;
    const auto known =
        std::find_if(kLevels.begin(), kLevels.end(), [&](Level l) { return name(l) == level; });
    if (known == kLevels.end())
      throw Error("template", line, column, fmt::format("'{}' is no attribute", level),
                  "known: GRID, WARP, CTA, THREAD");
    result.level = *known;
    if (peek() != '_') return result;
    advance();
    const std::string_view digits =
        word([](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result.count);
    if (error != std::errc() || end == digits.data() || result.count < 1)
      fail("a number of tiles is a positive integer");
    return result;
  }

  void check_cover(const OpSchedule& schedule, const std::vector<std::pair<int, int>>& places) const {
    const ScheduledDims dims =
        scheduled_dims(computation_, computation_.node(schedule.op), schedule.dims.size());
    const auto& extents = dims.extents;
    if (extents.size() != schedule.dims.size())
      throw Error("template", schedule.line, schedule.column,
                  fmt::format("{} has {} attributes, its {} {}", computation_.node(schedule.op).name,
                              schedule.dims.size(), extents.size(),
                              extents.size() == 1 ? "dimension wants one" : "dimensions want one each"));
    for (std::size_t d = 0; d < extents.size(); ++d) {
      std::int64_t product = 1;
      bool counted = true;
      for (const Tiles& tiles : schedule.dims[d]) {
        counted = counted && tiles.count > 0;
        product *= std::max<std::int64_t>(1, tiles.count);
      }
      if (counted && product < extents[d])
        throw Error("template", places[d].first, places[d].second,
                    fmt::format("{} covers {} of {} elements of the dimension",
                                attribute_text(schedule.dims[d]), product, extents[d]),
                    "the product of the numbers of tiles is at least the extent");
    }
  }

  const Computation& computation_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

}  // namespace

std::string_view name(Level level) {
  constexpr std::array<std::string_view, 4> kNames = {"GRID", "WARP", "CTA", "THREAD"};
  return kNames[static_cast<std::size_t>(level)];
}

std::string to_text(const Computation& computation, const std::vector<OpSchedule>& schedules) {
  std::string text;
  for (const OpSchedule& schedule : schedules) {
    std::vector<std::string> attributes;
    for (const Attribute& attribute : schedule.dims) attributes.push_back(attribute_text(attribute));
    text += fmt::format("{}{}[{}]{};", text.empty() ? "" : " ", computation.node(schedule.op).name,
                        fmt::join(attributes, ","), schedule.shared ? "S" : "");
  }
  return text;
}

std::vector<OpSchedule> parse_template(const Computation& computation, std::string_view text) {
  return Parser(computation, text).run();
}

}  // namespace stitchwork::fusionstitching
