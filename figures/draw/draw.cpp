#include "figures/draw/draw.h"

#include <cmath>

#include "figures/draw/canvas.h"
#include "figures/draw/kinds.h"
#include "figures/draw/svg.h"

namespace stitchwork {

Size figure_size(const Figure& figure) {
  constexpr double kInch = 72, kColumn = 3.33, kPage = 7;
  const double width = figure.width == FigureWidth::kColumn ? kColumn : kPage;
  const double usual =
      figure.kind == FigureKind::kHeatmap ? 0.7 + 0.25 * static_cast<double>(figure.series.size()) : 2.0;
  return {width * kInch, (figure.height_in > 0 ? figure.height_in : usual) * kInch};
}

std::string provenance_text(const Figure& figure) {
  std::string text;
  for (const auto& [key, value] : figure.provenance) text += (text.empty() ? "" : "; ") + key + ": " + value;
  return text;
}

void draw_figure(Drawing& drawing, const Figure& figure, Size size) {
  const bool bars = figure.kind == FigureKind::kBars || figure.kind == FigureKind::kStackedBars;
  const double top =
      figure.kind == FigureKind::kHeatmap ? 0 : draw_legend(drawing, figure, size.width, !bars);
  if (bars)
    draw_bars(drawing, figure, size, top);
  else if (figure.kind == FigureKind::kHeatmap)
    draw_heatmap(drawing, figure, size, top);
  else
    draw_points(drawing, figure, size, top);
}

std::string figure_svg(const Figure& figure) {
  const Size whole = figure_size(figure), size = {std::round(whole.width), std::round(whole.height)};
  Svg svg;
  draw_figure(svg, figure, {size.width - 2 * kFigureMargin, size.height - 2 * kFigureMargin});
  return svg.file(size, kFigureMargin, figure.title, provenance_text(figure));
}

}  // namespace stitchwork
