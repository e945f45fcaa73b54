// What kinds of figures share: strokes, text, marks, hatches, the frame with its axes and the legend.
#pragma once

#include <string>
#include <string_view>

#include "figures/data/figure.h"
#include "figures/data/palette.h"
#include "figures/draw/axis.h"
#include "figures/draw/drawing.h"
#include "figures/draw/text_width.h"

namespace stitchwork {

inline constexpr std::string_view kInk = "#222222", kGrid = "#dddddd", kQuiet = "#666666";
inline constexpr double kThin = 0.5, kLine = 1.2;  ///< points

/// Centred (0), left (-1) or right (1) aligned at x; y is the text's middle.
void draw_text(Drawing& drawing, double x, double y, std::string_view text, int align = 0, int points = 8,
               std::string_view ink = kInk);
/// Reading upwards (90 degrees) or slanted, its end or middle at (x, y).
void draw_rotated(Drawing& drawing, double x, double y, std::string_view text, double degrees, int align,
                  int points = 8, std::string_view ink = kInk);

/// Filled, hatched and outlined as the style says.
void draw_bar(Drawing& drawing, const Rect& bar, const SeriesStyle& style);
void draw_mark(Drawing& drawing, Point at, const SeriesStyle& style, double size = 4);
Stroke line_stroke(const SeriesStyle& style, double width = kLine);
void draw_error(Drawing& drawing, double x, double low, double high);

/// The y axis with its gridlines, ticks and label, left of `plot`.
void draw_y_axis(Drawing& drawing, const Rect& plot, const Scale& scale, const FigureAxis& axis,
                 bool grid = true);
/// The x axis of numbers, below it.
void draw_x_axis(Drawing& drawing, const Rect& plot, const Scale& scale, const FigureAxis& axis);
std::string tick_at(const Scale& scale, double value);
/// Room that the y axis' ticks and label take.
double y_axis_width(const Scale& scale, const FigureAxis& axis);
double x_axis_height(const FigureAxis& axis);

/// At the top, in as many lines as it takes; returns its height. Nothing for a single series without a name.
double draw_legend(Drawing& drawing, const Figure& figure, double width, bool lines);

/// Dashed lines across the plot; the legend names them.
void draw_references(Drawing& drawing, const Rect& plot, const Scale& y, const Figure& figure);

}  // namespace stitchwork
