#include <algorithm>
#include <cmath>

#include "figures/draw/canvas.h"
#include "figures/draw/kinds.h"

namespace stitchwork {
namespace {

/// Runs of points without a hole.
using Runs = std::vector<std::vector<Point>>;

Runs runs_of(const Figure& figure, const FigureSeries& series) {
  Runs runs(1);
  if (figure.kind == FigureKind::kCdf) {
    double share = 0;
    for (const auto& [x, next] : cumulative(series)) {
      runs[0].push_back({x, share});
      runs[0].push_back({x, next});
      share = next;
    }
    return runs;
  }
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const bool there = series.y[i] && std::isfinite(*series.y[i]) && std::isfinite(series.x[i]) &&
                       (!figure.x.logarithmic || series.x[i] > 0) &&
                       (!figure.y.logarithmic || *series.y[i] > 0);
    if (there)
      runs.back().push_back({series.x[i], *series.y[i]});
    else if (!runs.back().empty())
      runs.emplace_back();
  }
  return runs;
}

}  // namespace

void draw_points(Drawing& drawing, const Figure& figure, Size size, double top) {
  double x_low = 1e300, x_high = -1e300, y_low = 1e300, y_high = -1e300;
  std::vector<Runs> all;
  for (const FigureSeries& series : figure.series) {
    all.push_back(runs_of(figure, series));
    for (const auto& run : all.back())
      for (const Point& p : run) {
        x_low = std::min(x_low, p.x), x_high = std::max(x_high, p.x);
        y_low = std::min(y_low, p.y), y_high = std::max(y_high, p.y);
      }
  }
  FigureAxis y_axis = figure.y;
  if (figure.kind == FigureKind::kCdf)
    y_axis.low = y_axis.low.value_or(0), y_axis.high = y_axis.high.value_or(1);
  for (const FigureReference& r : figure.references)
    y_low = std::min(y_low, r.y), y_high = std::max(y_high, r.y);
  const Scale y = scale_of(y_axis, y_low, y_high, false, 5);
  const double left = y_axis_width(y, y_axis);
  const Scale x =
      scale_of(figure.x, x_low, x_high, false, std::max(2, static_cast<int>((size.width - left) / 38)));
  const double last = x.ticks.empty() ? 0 : text_width(tick_at(x, x.ticks.back())) / 2;
  const Rect plot{left, top + 4, size.width - last - 1, size.height - x_axis_height(figure.x)};
  draw_x_axis(drawing, plot, x, figure.x);
  draw_y_axis(drawing, plot, y, y_axis);
  // What lies beyond the axes' limits is drawn at them: SVG of this form knows no clipping.
  const auto at = [&](const Point& p) {
    return Point{plot.left + std::clamp(x.position(p.x), 0.0, 1.0) * plot.width(),
                 plot.bottom - std::clamp(y.position(p.y), 0.0, 1.0) * plot.height()};
  };
  draw_references(drawing, plot, y, figure);
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    const FigureSeries& series = figure.series[s];
    const SeriesStyle& style = series_style(s, series.style);
    for (const auto& run : all[s]) {
      const bool line = series.mark == FigureMark::kLine || figure.kind == FigureKind::kCdf;
      if (line && run.size() > 1) {
        std::vector<Point> points;
        for (const Point& p : run) points.push_back(at(p));
        drawing.polyline(points, line_stroke(style));
      } else {
        for (const Point& p : run) draw_mark(drawing, at(p), style);
      }
    }
    if (!series.interval.empty())
      for (std::size_t i = 0; i < series.y.size(); ++i)
        if (series.interval[i])
          draw_error(drawing, at({series.x[i], 0}).x, at({0, series.interval[i]->first}).y,
                     at({0, series.interval[i]->second}).y);
  }
}

}  // namespace stitchwork
