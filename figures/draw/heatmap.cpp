#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "figures/data/palette.h"
#include "figures/draw/canvas.h"
#include "figures/draw/kinds.h"

namespace stitchwork {
namespace {

std::string shade(double t) {
  const auto [red, green, blue] = viridis(t);
  return fmt::format("#{:02x}{:02x}{:02x}", red, green, blue);
}

}  // namespace

void draw_heatmap(Drawing& drawing, const Figure& figure, Size size, double top) {
  constexpr double kBar = 8, kGap = 4;
  double low = 1e300, high = -1e300, names = 0;
  for (const FigureSeries& series : figure.series) {
    names = std::max(names, text_width(series.name));
    for (const auto& y : series.y)
      if (y) low = std::min(low, *y), high = std::max(high, *y);
  }
  FigureAxis value;
  value.low = figure.y.low, value.high = figure.y.high;
  value.logarithmic = figure.y.logarithmic;
  const Scale scale = scale_of(value, low, high, false, 5);
  const double label = figure.y.label.empty() ? 0 : text_height() + kGap;
  const double bar = kBar + kGap + y_axis_width(scale, value);
  const Rect plot{label + names + kGap, top + 4, size.width - bar - 2 * kGap,
                  size.height - x_axis_height(figure.x)};
  const double width = plot.width() / std::max<double>(1, static_cast<double>(figure.categories.size()));
  const double height = plot.height() / std::max<double>(1, static_cast<double>(figure.series.size()));
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    const double y = plot.top + height * static_cast<double>(s);
    draw_text(drawing, plot.left - kGap, y + height / 2, figure.series[s].name, 1);
    for (std::size_t c = 0; c < figure.categories.size(); ++c) {
      const double x = plot.left + width * static_cast<double>(c);
      const Rect cell{x, y, x + width, y + height};
      const auto& number = figure.series[s].y[c];
      const double t = number ? scale.position(*number) : 0;
      const std::string colour = number ? shade(t) : "#f2f2f2";
      drawing.rect(cell, {colour}, {"#ffffff", kThin});
      const std::string shown = !number         ? "none"
                                : figure.digits ? fmt::format("{:.{}f}", *number, *figure.digits)
                                                : "";
      constexpr int kSmall = 7;
      constexpr double kLight = 0.6;  // of the scale: black is read better from here on
      if (text_width(shown, kSmall) < width - 2)
        draw_text(drawing, cell.center().x, cell.center().y, shown, 0, kSmall,
                  !number      ? kQuiet
                  : t > kLight ? std::string_view("#000000")
                               : std::string_view("#ffffff"));
    }
  }
  double free = -1e9;
  for (std::size_t c = 0; c < figure.categories.size(); ++c) {
    const std::string& name = figure.categories[c];
    const double x = plot.left + width * (static_cast<double>(c) + 0.5);
    if (x - text_width(name) / 2 < free) continue;
    draw_text(drawing, x, plot.bottom + 3 + text_height() / 2, name);
    free = x + text_width(name) / 2 + 3;
  }
  if (!figure.x.label.empty())
    draw_text(drawing, plot.center().x, size.height - text_height() / 2, figure.x.label);
  if (!figure.y.label.empty())
    draw_rotated(drawing, text_height() / 2, plot.center().y, figure.y.label, 90, 0);
  // The scale.
  const Rect legend{size.width - kBar - 1, plot.top, size.width - 1, plot.bottom};
  constexpr int kSteps = 32;
  for (int i = 0; i < kSteps; ++i) {
    const std::string colour = shade((i + 0.5) / kSteps);
    const double step = legend.height() / kSteps, low = legend.bottom - step * i;
    drawing.rect({legend.left, low - step, legend.right, low + 0.2}, {colour}, {});
  }
  draw_y_axis(drawing, legend, scale, value, false);
}

}  // namespace stitchwork
