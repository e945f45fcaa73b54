#include "figures/draw/canvas.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace stitchwork {
namespace {

constexpr double kTick = 2.5, kGap = 3, kHatchStep = 3;

/// The part of the line x + sign * y = c inside the rectangle (y from its top), if any.
void hatch_line(Drawing& drawing, const Rect& r, double c, int sign, const Stroke& stroke) {
  const double x0 = std::clamp(sign > 0 ? c - r.height() : c, 0.0, r.width());
  const double x1 = std::clamp(sign > 0 ? c : c + r.height(), 0.0, r.width());
  if (x1 - x0 < 0.05) return;
  const auto y = [&](double x) { return sign > 0 ? c - x : x - c; };
  drawing.line(Point{r.left + x0, r.top + y(x0)}, Point{r.left + x1, r.top + y(x1)}, stroke);
}

void draw_hatch(Drawing& drawing, const Rect& r, Hatch hatch, const Stroke& stroke) {
  if (hatch == Hatch::kUp || hatch == Hatch::kCross)
    for (double c = kHatchStep; c < r.width() + r.height(); c += kHatchStep)
      hatch_line(drawing, r, c, 1, stroke);
  if (hatch == Hatch::kDown || hatch == Hatch::kCross)
    for (double c = kHatchStep - r.height(); c < r.width(); c += kHatchStep)
      hatch_line(drawing, r, c, -1, stroke);
  if (hatch == Hatch::kHorizontal)
    for (double y = r.bottom - kHatchStep / 2; y > r.top; y -= kHatchStep)
      drawing.line({r.left, y}, {r.right, y}, stroke);
  if (hatch == Hatch::kVertical)
    for (double x = r.left + kHatchStep / 2; x < r.right; x += kHatchStep)
      drawing.line({x, r.top}, {x, r.bottom}, stroke);
}

double step_of(const Scale& scale) {
  if (scale.logarithmic) return scale.ticks.empty() ? 1 : scale.ticks[0];
  return scale.ticks.size() < 2 ? scale.high - scale.low : scale.ticks[1] - scale.ticks[0];
}

}  // namespace

std::string tick_at(const Scale& scale, double value) {
  return tick_text(value, scale.logarithmic ? value : step_of(scale));
}

void draw_text(Drawing& drawing, double x, double y, std::string_view text, int align, int points,
               std::string_view ink) {
  drawing.text({x, y}, text, align, points, ink, 0);
}

void draw_rotated(Drawing& drawing, double x, double y, std::string_view text, double degrees, int align,
                  int points, std::string_view ink) {
  drawing.text({x, y}, text, align, points, ink, degrees);
}

void draw_bar(Drawing& drawing, const Rect& bar, const SeriesStyle& style) {
  drawing.rect(bar, {style.colour}, {});
  draw_hatch(drawing, bar, style.hatch, {style.ink, kThin});
  drawing.rect(bar, {}, {kInk, kThin});
}

void draw_mark(Drawing& drawing, Point at, const SeriesStyle& style, double size) {
  const double r = size / 2;
  const Fill fill{style.line};
  const Stroke outline{kInk, kThin}, stroke{style.line, kLine};
  const double d = style.mark == MarkShape::kCross ? r * 0.8 : 0;
  switch (style.mark) {
    case MarkShape::kCircle:
      return drawing.circle(at, r, fill, outline);
    case MarkShape::kSquare:
      return drawing.rect({at.x - r, at.y - r, at.x + r, at.y + r}, fill, outline);
    case MarkShape::kTriangle:
      return drawing.polygon({{at.x, at.y - r}, {at.x + r, at.y + r}, {at.x - r, at.y + r}}, fill, outline);
    case MarkShape::kDiamond:
      return drawing.polygon({{at.x, at.y - r}, {at.x + r, at.y}, {at.x, at.y + r}, {at.x - r, at.y}}, fill,
                             outline);
    case MarkShape::kCross:
      drawing.line({at.x - d, at.y - d}, {at.x + d, at.y + d}, stroke);
      return drawing.line({at.x - d, at.y + d}, {at.x + d, at.y - d}, stroke);
    case MarkShape::kPlus:
      drawing.line({at.x - r, at.y}, {at.x + r, at.y}, stroke);
      return drawing.line({at.x, at.y + r}, {at.x, at.y - r}, stroke);
  }
}

Stroke line_stroke(const SeriesStyle& style, double width) {
  Stroke stroke{style.line, width};
  if (style.dash[0] > 0) stroke.dash.assign(style.dash.begin(), style.dash.end());
  return stroke;
}

void draw_error(Drawing& drawing, double x, double low, double high) {
  constexpr double kCap = 1.5;
  const Stroke stroke{kInk, kThin};
  drawing.line({x, low}, {x, high}, stroke);
  for (const double y : {low, high}) drawing.line({x - kCap, y}, {x + kCap, y}, stroke);
}

namespace {

/// The label beside the y axis in lines that a low figure's plot has room for, in its smallest letters but
/// one. A choice, not measured: the plots of figures across a page are 80 points high and more.
std::vector<std::string> label_lines(const FigureAxis& axis) {
  constexpr double kRoom = 90;
  constexpr int kPoints = 6;
  std::vector<std::string> lines;
  std::istringstream words(axis.label);
  for (std::string word; words >> word;)
    if (lines.empty() || text_width(lines.back() + ' ' + word, kPoints) > kRoom)
      lines.push_back(word);
    else
      lines.back() += ' ' + word;
  return lines;
}

}  // namespace

double y_axis_width(const Scale& scale, const FigureAxis& axis) {
  double widest = 0;
  for (const double tick : scale.ticks) widest = std::max(widest, text_width(tick_at(scale, tick)));
  const auto lines = static_cast<double>(label_lines(axis).size());
  return widest + kTick + kGap + (lines > 0 ? lines * text_height() + kGap : 0);
}

double x_axis_height(const FigureAxis& axis) {
  return kTick + kGap + text_height() + (axis.label.empty() ? 0 : text_height() + 1);
}

void draw_y_axis(Drawing& drawing, const Rect& plot, const Scale& scale, const FigureAxis& axis, bool grid) {
  const Stroke ink{kInk, kThin}, faint{kGrid, kThin};
  const auto at = [&](double value) { return plot.bottom - scale.position(value) * plot.height(); };
  for (const double tick : scale.ticks) {
    if (grid) drawing.line({plot.left, at(tick)}, {plot.right, at(tick)}, faint);
    drawing.line({plot.left - kTick, at(tick)}, {plot.left, at(tick)}, ink);
    draw_text(drawing, plot.left - kTick - 1.5, at(tick), tick_at(scale, tick), 1);
  }
  for (const double tick : scale.minor)
    drawing.line({plot.left - kTick / 2, at(tick)}, {plot.left, at(tick)}, ink);
  drawing.line({plot.left, plot.bottom}, {plot.left, plot.top}, ink);
  double x = plot.left - y_axis_width(scale, axis) + text_height() / 2;
  int points = 8;
  const std::vector<std::string> lines = label_lines(axis);
  for (const std::string& line : lines)
    while (points > 5 && text_width(line, points) > plot.height() + 6) --points;
  for (const std::string& line : lines) {
    draw_rotated(drawing, x, plot.center().y, line, 90, 0, points);
    x += text_height();
  }
}

void draw_x_axis(Drawing& drawing, const Rect& plot, const Scale& scale, const FigureAxis& axis) {
  const Stroke ink{kInk, kThin}, faint{kGrid, kThin};
  const auto at = [&](double value) { return plot.left + scale.position(value) * plot.width(); };
  double free = -1e9;  // where the last label ended
  for (const double tick : scale.ticks) {
    drawing.line({at(tick), plot.top}, {at(tick), plot.bottom}, faint);
    drawing.line({at(tick), plot.bottom}, {at(tick), plot.bottom + kTick}, ink);
    const std::string label = tick_at(scale, tick);
    const double half = text_width(label) / 2;
    if (at(tick) - half < free) continue;
    draw_text(drawing, at(tick), plot.bottom + kTick + kGap + text_height() / 2 - 1, label);
    free = at(tick) + half + 4;
  }
  for (const double tick : scale.minor)
    drawing.line({at(tick), plot.bottom}, {at(tick), plot.bottom + kTick / 2}, ink);
  drawing.line({plot.left, plot.bottom}, {plot.right, plot.bottom}, ink);
  if (!axis.label.empty())
    draw_text(drawing, plot.center().x, plot.bottom + x_axis_height(axis) - text_height() / 2, axis.label);
}

namespace {

/// Entries of a legend, left to right and line by line.
class Legend {
 public:
  Legend(Drawing& drawing, double width) : drawing_(drawing), width_(width) {}

  /// `draw(x, y)` its swatch, so many points wide, centred at y.
  template <typename Draw>
  void add(const std::string& name, double swatch, Draw draw) {
    constexpr double kBetween = 9;
    const double needed = swatch + 3 + text_width(name);
    if (x_ > 0 && x_ + needed > width_) x_ = 0, y_ += text_height() + 2;
    draw(x_, y_);
    draw_text(drawing_, x_ + swatch + 3, y_, name, -1);
    x_ += needed + kBetween;
  }
  double height() const { return x_ == 0 ? 0 : y_ + text_height() / 2 + 4; }

 private:
  Drawing& drawing_;
  double width_, x_ = 0, y_ = text_height() / 2;
};

Stroke reference_stroke() { return {kInk, 0.8, {4, 3}}; }

}  // namespace

double draw_legend(Drawing& drawing, const Figure& figure, double width, bool lines) {
  constexpr double kSwatch = 10;
  const double swatch = lines ? 2 * kSwatch : kSwatch;
  Legend legend(drawing, width);
  const bool named = figure.series.size() > 1 || (!figure.series.empty() && !figure.series[0].name.empty());
  for (std::size_t i = 0; named && i < figure.series.size(); ++i) {
    const FigureSeries& series = figure.series[i];
    const SeriesStyle& style = series_style(i, series.style);
    legend.add(series.name, swatch, [&](double x, double y) {
      if (!lines) {
        draw_bar(drawing, {x, y - 3.5, x + swatch, y + 3.5}, style);
      } else if (series.mark == FigureMark::kLine) {
        drawing.line({x, y}, {x + swatch, y}, line_stroke(style));
      } else {
        draw_mark(drawing, {x + swatch / 2, y}, style);
      }
    });
  }
  for (const FigureReference& reference : figure.references)
    legend.add(reference.label, 2 * kSwatch, [&](double x, double y) {
      drawing.line({x, y}, {x + 2 * kSwatch, y}, reference_stroke());
    });
  return legend.height();
}

void draw_references(Drawing& drawing, const Rect& plot, const Scale& y, const Figure& figure) {
  for (const FigureReference& reference : figure.references) {
    const double at = y.position(reference.y);
    if (at < 0 || at > 1) continue;
    const double height = plot.bottom - at * plot.height();
    drawing.line({plot.left, height}, {plot.right, height}, reference_stroke());
  }
}

}  // namespace stitchwork
