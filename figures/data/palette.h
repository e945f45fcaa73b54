// The colours of figures, reports and the workbench, and the hatches, dashes and marks of series. Told apart
// under protan, deutan and tritan vision (Paul Tol's muted scheme) and, by hatch, dash and mark, in
// greyscale.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stitchwork {

/// Tol's muted scheme.
namespace tol {
inline constexpr std::string_view kGrey = "#BBBBBB", kSand = "#DDCC77", kCyan = "#88CCEE", kRose = "#CC6677",
                                  kIndigo = "#332288", kTeal = "#44AA99", kWine = "#882255",
                                  kGreen = "#117733", kOlive = "#999933";
}  // namespace tol

/// Red, green, blue of viridis (matplotlib, CC0) at t within [0, 1]: lighter means more, in greyscale too.
/// Between eight of its colours it is linear.
inline std::array<int, 3> viridis(double t) {
  constexpr std::array<std::array<double, 3>, 8> kPlaces = {{{68, 1, 84},
                                                             {70, 50, 127},
                                                             {54, 92, 141},
                                                             {39, 127, 142},
                                                             {31, 161, 135},
                                                             {74, 194, 109},
                                                             {159, 218, 58},
                                                             {253, 231, 37}}};
  const double place = std::clamp(t, 0.0, 1.0) * (kPlaces.size() - 1);
  const auto i = std::min<std::size_t>(kPlaces.size() - 2, static_cast<std::size_t>(place));
  const double f = place - static_cast<double>(i);
  std::array<int, 3> colour{};
  for (std::size_t c = 0; c < colour.size(); ++c)
    colour[c] = static_cast<int>(std::lround(kPlaces[i][c] * (1 - f) + kPlaces[i + 1][c] * f));
  return colour;
}

enum class Hatch : std::uint8_t { kNone, kUp, kDown, kCross, kHorizontal, kVertical };
enum class MarkShape : std::uint8_t { kCircle, kSquare, kTriangle, kDiamond, kCross, kPlus };

struct SeriesStyle {
  std::string_view colour;  ///< "#rrggbb"
  std::string_view ink;     ///< of its hatch, on the colour
  std::string_view line;    ///< of lines and marks, dark enough for thin ones on white
  Hatch hatch;
  MarkShape mark;
  std::array<double, 4> dash;  ///< on, off, on, off, in points; all 0: solid
};

inline constexpr std::array<SeriesStyle, 8> kSeriesStyles = {{
    {tol::kGrey, "#555555", "#777777", Hatch::kNone, MarkShape::kCircle, {1, 1.5, 1, 1.5}},
    {tol::kSand, "#6E6128", "#8A7A1F", Hatch::kUp, MarkShape::kSquare, {4, 2, 4, 2}},
    {tol::kCyan, "#2B6A88", "#2B7FA8", Hatch::kHorizontal, MarkShape::kTriangle, {5, 1.5, 1, 1.5}},
    {tol::kRose, "#5C1F2B", "#B04A5C", Hatch::kDown, MarkShape::kDiamond, {2, 1, 2, 1}},
    {tol::kIndigo, "#FFFFFF", tol::kIndigo, Hatch::kNone, MarkShape::kCircle, {0, 0, 0, 0}},
    {tol::kTeal, "#164A41", "#2F8577", Hatch::kCross, MarkShape::kPlus, {7, 2, 1, 2}},
    {tol::kWine, "#F2D3E1", tol::kWine, Hatch::kVertical, MarkShape::kCross, {3, 3, 3, 3}},
    {tol::kGreen, "#CFEBD7", tol::kGreen, Hatch::kUp, MarkShape::kTriangle, {6, 2, 3, 2}},
}};

/// Of the n-th series, or of a slot asked for.
inline const SeriesStyle& series_style(std::size_t n, int slot) {
  return kSeriesStyles[(slot >= 0 ? static_cast<std::size_t>(slot) : n) % kSeriesStyles.size()];
}

}  // namespace stitchwork
