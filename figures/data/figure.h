// A figure as a value: its numbers, what they are called and where they come from. It knows no toolkit: the
// painter (figures/paint/paint.h), CSV and Vega-Lite are made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stitchwork {

enum class FigureKind : std::uint8_t {
  kBars,         ///< series beside each other, by category
  kStackedBars,  ///< series on top of each other, by category
  kPoints,       ///< lines, scatter, rooflines: series of (x, y)
  kHeatmap,      ///< series are rows, categories columns
  kCdf,          ///< share of each series' values that are at most x
};

struct FigureAxis {
  std::string label;
  bool logarithmic = false;
  std::optional<double> low, high;  ///< else from the numbers; bars begin at 0
};

/// How a series of (x, y) is drawn.
enum class FigureMark : std::uint8_t { kLine, kPoints };

struct FigureSeries {
  std::string name;
  int style = -1;  ///< slot of the palette, so that a planner looks alike in all figures; -1: its number
  FigureMark mark = FigureMark::kLine;
  std::vector<double> x;                 ///< points: of each value
  std::vector<std::optional<double>> y;  ///< by category or point; empty: there is none
  std::vector<std::optional<std::pair<double, double>>>
      interval;        ///< error bars, by value; none where the list is empty
  std::string method;  ///< how the numbers were obtained: "modelled", ...
};

/// A line across the plot at y, as of another's result.
struct FigureReference {
  double y = 0;
  std::string label;
};

/// Widths of a column and of a page of the usual proceedings.
enum class FigureWidth : std::uint8_t { kColumn, kPage };

struct Figure {
  std::string id;     ///< a file's name
  std::string title;  ///< caption: not drawn, in the metadata
  FigureKind kind = FigureKind::kBars;
  FigureWidth width = FigureWidth::kColumn;
  double height_in = 0;  ///< 0: by the kind
  FigureAxis x, y;
  std::vector<std::string> categories;
  std::vector<std::pair<std::string, int>>
      groups;  ///< of so many categories each, named below them; none, or all of them
  std::vector<FigureSeries> series;
  std::vector<FigureReference> references;
  std::optional<int> digits;  ///< behind the point, of numbers written at bars and in cells; empty: none are
  std::vector<std::pair<std::string, std::string>> provenance;  ///< commit, experiment, device, ...
};

/// The methods of the figure's numbers, each once.
std::vector<std::string> methods(const Figure& figure);

/// SW_CHECKs that lists have the lengths that the kind wants. Painters rely on it.
void check(const Figure& figure);

/// (x, share of values at most x) of each value, ascending: what a CDF draws.
std::vector<std::pair<double, double>> cumulative(const FigureSeries& series);

}  // namespace stitchwork
