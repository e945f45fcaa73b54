// Colours, hatches, dashes and marks of series, shared by the painter and the Vega-Lite form. Told apart
// under protan, deutan and tritan vision (Paul Tol's muted scheme) and, by hatch, dash and mark, in
// greyscale.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stitchwork {

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
    {"#BBBBBB", "#555555", "#777777", Hatch::kNone, MarkShape::kCircle, {1, 1.5, 1, 1.5}},
    {"#DDCC77", "#6E6128", "#8A7A1F", Hatch::kUp, MarkShape::kSquare, {4, 2, 4, 2}},
    {"#88CCEE", "#2B6A88", "#2B7FA8", Hatch::kHorizontal, MarkShape::kTriangle, {5, 1.5, 1, 1.5}},
    {"#CC6677", "#5C1F2B", "#B04A5C", Hatch::kDown, MarkShape::kDiamond, {2, 1, 2, 1}},
    {"#332288", "#FFFFFF", "#332288", Hatch::kNone, MarkShape::kCircle, {0, 0, 0, 0}},
    {"#44AA99", "#164A41", "#2F8577", Hatch::kCross, MarkShape::kPlus, {7, 2, 1, 2}},
    {"#882255", "#F2D3E1", "#882255", Hatch::kVertical, MarkShape::kCross, {3, 3, 3, 3}},
    {"#117733", "#CFEBD7", "#117733", Hatch::kUp, MarkShape::kTriangle, {6, 2, 3, 2}},
}};

/// Of the n-th series, or of a slot asked for.
inline const SeriesStyle& series_style(std::size_t n, int slot) {
  return kSeriesStyles[(slot >= 0 ? static_cast<std::size_t>(slot) : n) % kSeriesStyles.size()];
}

}  // namespace stitchwork
