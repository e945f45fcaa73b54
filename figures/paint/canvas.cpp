#include "figures/paint/canvas.h"

#include <QFontMetricsF>
#include <QPolygonF>
#include <algorithm>
#include <cmath>

#include "figures/paint/paint.h"

namespace stitchwork {
namespace {

constexpr double kTick = 2.5, kGap = 3, kHatchStep = 3;

/// The part of the line x + sign * y = c inside the rectangle (y from its top), if any.
void hatch_line(QPainter& painter, const QRectF& r, double c, int sign) {
  const double x0 = std::clamp(sign > 0 ? c - r.height() : c, 0.0, r.width());
  const double x1 = std::clamp(sign > 0 ? c : c + r.height(), 0.0, r.width());
  if (x1 - x0 < 0.05) return;
  const auto y = [&](double x) { return sign > 0 ? c - x : x - c; };
  painter.drawLine(QPointF(r.left() + x0, r.top() + y(x0)), QPointF(r.left() + x1, r.top() + y(x1)));
}

void draw_hatch(QPainter& painter, const QRectF& r, Hatch hatch) {
  if (hatch == Hatch::kUp || hatch == Hatch::kCross)
    for (double c = kHatchStep; c < r.width() + r.height(); c += kHatchStep) hatch_line(painter, r, c, 1);
  if (hatch == Hatch::kDown || hatch == Hatch::kCross)
    for (double c = kHatchStep - r.height(); c < r.width(); c += kHatchStep) hatch_line(painter, r, c, -1);
  if (hatch == Hatch::kHorizontal)
    for (double y = r.bottom() - kHatchStep / 2; y > r.top(); y -= kHatchStep)
      painter.drawLine(QPointF(r.left(), y), QPointF(r.right(), y));
  if (hatch == Hatch::kVertical)
    for (double x = r.left() + kHatchStep / 2; x < r.right(); x += kHatchStep)
      painter.drawLine(QPointF(x, r.top()), QPointF(x, r.bottom()));
}

double step_of(const Scale& scale) {
  if (scale.logarithmic) return scale.ticks.empty() ? 1 : scale.ticks[0];
  return scale.ticks.size() < 2 ? scale.high - scale.low : scale.ticks[1] - scale.ticks[0];
}

}  // namespace

QString tick_at(const Scale& scale, double value) {
  return tick_text(value, scale.logarithmic ? value : step_of(scale));
}

QColor colour(std::string_view hex) {
  return QColor(QString::fromLatin1(hex.data(), static_cast<qsizetype>(hex.size())));
}

QString text(const std::string& utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

double text_width(const QString& text, int points, bool bold) {
  return QFontMetricsF(figure_font(points, bold)).horizontalAdvance(text);
}

double text_height(int points) { return points * 1.2; }

void draw_text(QPainter& painter, double x, double y, const QString& text, int align, int points,
               const QColor& ink) {
  constexpr double kMiddle = 0.36;  // of a digit's height above the baseline, in ems
  painter.setFont(figure_font(points));
  painter.setPen(ink);
  const double width = text_width(text, points);
  painter.drawText(QPointF(align < 0    ? x
                           : align == 0 ? x - width / 2
                                        : x - width,
                           y + kMiddle * points),
                   text);
}

void draw_rotated(QPainter& painter, double x, double y, const QString& text, double degrees, int align,
                  int points, const QColor& ink) {
  painter.save();
  painter.translate(x, y);
  painter.rotate(-degrees);
  draw_text(painter, 0, 0, text, align, points, ink);
  painter.restore();
}

void draw_bar(QPainter& painter, const QRectF& bar, const SeriesStyle& style) {
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour(style.colour));
  painter.drawRect(bar);
  painter.setPen(QPen(colour(style.ink), kThin));
  draw_hatch(painter, bar, style.hatch);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(kInk, kThin));
  painter.drawRect(bar);
}

void draw_mark(QPainter& painter, const QPointF& at, const SeriesStyle& style, double size) {
  const double r = size / 2;
  painter.setPen(QPen(kInk, kThin));
  painter.setBrush(colour(style.line));
  switch (style.mark) {
    case MarkShape::kCircle:
      painter.drawEllipse(at, r, r);
      break;
    case MarkShape::kSquare:
      painter.drawRect(QRectF(at.x() - r, at.y() - r, size, size));
      break;
    case MarkShape::kTriangle:
      painter.drawPolygon(
          QPolygonF({{at.x(), at.y() - r}, {at.x() + r, at.y() + r}, {at.x() - r, at.y() + r}}));
      break;
    case MarkShape::kDiamond:
      painter.drawPolygon(QPolygonF(
          {{at.x(), at.y() - r}, {at.x() + r, at.y()}, {at.x(), at.y() + r}, {at.x() - r, at.y()}}));
      break;
    case MarkShape::kCross:
    case MarkShape::kPlus: {
      const double d = style.mark == MarkShape::kCross ? r * 0.8 : 0;
      painter.setPen(QPen(colour(style.line), kLine));
      painter.drawLine(QPointF(at.x() - (d > 0 ? d : r), at.y() - d),
                       QPointF(at.x() + (d > 0 ? d : r), at.y() + d));
      painter.drawLine(QPointF(at.x() - d, at.y() + (d > 0 ? d : r)),
                       QPointF(at.x() + d, at.y() - (d > 0 ? d : r)));
      break;
    }
  }
}

QPen line_pen(const SeriesStyle& style, double width) {
  QPen pen(colour(style.line), width, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin);
  if (style.dash[0] > 0) {
    QList<qreal> pattern;
    for (const double d : style.dash) pattern.push_back(d);
    pen.setDashPattern(pattern);
  }
  return pen;
}

void draw_error(QPainter& painter, double x, double low, double high) {
  constexpr double kCap = 1.5;
  painter.setPen(QPen(kInk, kThin));
  painter.drawLine(QPointF(x, low), QPointF(x, high));
  for (const double y : {low, high}) painter.drawLine(QPointF(x - kCap, y), QPointF(x + kCap, y));
}

namespace {

/// The label beside the y axis in lines that a low figure's plot has room for, in its smallest letters but
/// one. A choice, not measured: the plots of figures across a page are 80 points high and more.
QStringList label_lines(const FigureAxis& axis) {
  constexpr double kRoom = 90;
  constexpr int kPoints = 6;
  QStringList lines;
  for (const QString& word : text(axis.label).split(' ', Qt::SkipEmptyParts))
    if (lines.isEmpty() || text_width(lines.back() + ' ' + word, kPoints) > kRoom)
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

void draw_y_axis(QPainter& painter, const QRectF& plot, const Scale& scale, const FigureAxis& axis,
                 bool grid) {
  const auto at = [&](double value) { return plot.bottom() - scale.position(value) * plot.height(); };
  for (const double tick : scale.ticks) {
    if (grid) {
      painter.setPen(QPen(kGrid, kThin));
      painter.drawLine(QPointF(plot.left(), at(tick)), QPointF(plot.right(), at(tick)));
    }
    painter.setPen(QPen(kInk, kThin));
    painter.drawLine(QPointF(plot.left() - kTick, at(tick)), QPointF(plot.left(), at(tick)));
    draw_text(painter, plot.left() - kTick - 1.5, at(tick), tick_at(scale, tick), 1);
  }
  painter.setPen(QPen(kInk, kThin));
  for (const double tick : scale.minor)
    painter.drawLine(QPointF(plot.left() - kTick / 2, at(tick)), QPointF(plot.left(), at(tick)));
  painter.drawLine(plot.bottomLeft(), plot.topLeft());
  double x = plot.left() - y_axis_width(scale, axis) + text_height() / 2;
  int points = 8;
  const QStringList lines = label_lines(axis);
  for (const QString& line : lines)
    while (points > 5 && text_width(line, points) > plot.height() + 6) --points;
  for (const QString& line : lines) {
    draw_rotated(painter, x, plot.center().y(), line, 90, 0, points);
    x += text_height();
  }
}

void draw_x_axis(QPainter& painter, const QRectF& plot, const Scale& scale, const FigureAxis& axis) {
  const auto at = [&](double value) { return plot.left() + scale.position(value) * plot.width(); };
  double free = -1e9;  // where the last label ended
  for (const double tick : scale.ticks) {
    painter.setPen(QPen(kGrid, kThin));
    painter.drawLine(QPointF(at(tick), plot.top()), QPointF(at(tick), plot.bottom()));
    painter.setPen(QPen(kInk, kThin));
    painter.drawLine(QPointF(at(tick), plot.bottom()), QPointF(at(tick), plot.bottom() + kTick));
    const QString label = tick_at(scale, tick);
    const double half = text_width(label) / 2;
    if (at(tick) - half < free) continue;
    draw_text(painter, at(tick), plot.bottom() + kTick + kGap + text_height() / 2 - 1, label);
    free = at(tick) + half + 4;
  }
  painter.setPen(QPen(kInk, kThin));
  for (const double tick : scale.minor)
    painter.drawLine(QPointF(at(tick), plot.bottom()), QPointF(at(tick), plot.bottom() + kTick / 2));
  painter.drawLine(plot.bottomLeft(), plot.bottomRight());
  if (!axis.label.empty())
    draw_text(painter, plot.center().x(), plot.bottom() + x_axis_height(axis) - text_height() / 2,
              text(axis.label));
}

namespace {

/// Entries of a legend, left to right and line by line.
class Legend {
 public:
  Legend(QPainter& painter, double width) : painter_(painter), width_(width) {}

  /// `draw(x, y)` its swatch, so many points wide, centred at y.
  template <typename Draw>
  void add(const std::string& name, double swatch, Draw draw) {
    constexpr double kBetween = 9;
    const QString label = text(name);
    const double needed = swatch + 3 + text_width(label);
    if (x_ > 0 && x_ + needed > width_) x_ = 0, y_ += text_height() + 2;
    draw(x_, y_);
    draw_text(painter_, x_ + swatch + 3, y_, label, -1);
    x_ += needed + kBetween;
  }
  double height() const { return x_ == 0 ? 0 : y_ + text_height() / 2 + 4; }

 private:
  QPainter& painter_;
  double width_, x_ = 0, y_ = text_height() / 2;
};

QPen reference_pen() {
  QPen pen(kInk, 0.8, Qt::SolidLine, Qt::FlatCap);
  pen.setDashPattern({4, 3});
  return pen;
}

}  // namespace

double draw_legend(QPainter& painter, const Figure& figure, double width, bool lines) {
  constexpr double kSwatch = 10;
  const double swatch = lines ? 2 * kSwatch : kSwatch;
  Legend legend(painter, width);
  const bool named = figure.series.size() > 1 || (!figure.series.empty() && !figure.series[0].name.empty());
  for (std::size_t i = 0; named && i < figure.series.size(); ++i) {
    const FigureSeries& series = figure.series[i];
    const SeriesStyle& style = series_style(i, series.style);
    legend.add(series.name, swatch, [&](double x, double y) {
      if (!lines) {
        draw_bar(painter, QRectF(x, y - 3.5, swatch, 7), style);
      } else if (series.mark == FigureMark::kLine) {
        painter.setPen(line_pen(style));
        painter.drawLine(QPointF(x, y), QPointF(x + swatch, y));
      } else {
        draw_mark(painter, QPointF(x + swatch / 2, y), style);
      }
    });
  }
  for (const FigureReference& reference : figure.references)
    legend.add(reference.label, 2 * kSwatch, [&](double x, double y) {
      painter.setPen(reference_pen());
      painter.drawLine(QPointF(x, y), QPointF(x + 2 * kSwatch, y));
    });
  return legend.height();
}

void draw_references(QPainter& painter, const QRectF& plot, const Scale& y, const Figure& figure) {
  for (const FigureReference& reference : figure.references) {
    const double at = y.position(reference.y);
    if (at < 0 || at > 1) continue;
    painter.setPen(reference_pen());
    painter.drawLine(QPointF(plot.left(), plot.bottom() - at * plot.height()),
                     QPointF(plot.right(), plot.bottom() - at * plot.height()));
  }
}

}  // namespace stitchwork
