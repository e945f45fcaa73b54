#include <algorithm>
#include <array>
#include <cmath>

#include "figures/data/palette.h"
#include "figures/paint/canvas.h"
#include "figures/paint/kinds.h"

namespace stitchwork {
namespace {

QColor shade(double t) {
  const auto [red, green, blue] = viridis(t);
  return QColor(red, green, blue);
}

}  // namespace

void paint_heatmap(QPainter& painter, const Figure& figure, const QSizeF& size, double top) {
  constexpr double kBar = 8, kGap = 4;
  double low = 1e300, high = -1e300, names = 0;
  for (const FigureSeries& series : figure.series) {
    names = std::max(names, text_width(text(series.name)));
    for (const auto& y : series.y)
      if (y) low = std::min(low, *y), high = std::max(high, *y);
  }
  FigureAxis value;
  value.low = figure.y.low, value.high = figure.y.high;
  value.logarithmic = figure.y.logarithmic;
  const Scale scale = scale_of(value, low, high, false, 5);
  const double label = figure.y.label.empty() ? 0 : text_height() + kGap;
  const double bar = kBar + kGap + y_axis_width(scale, value);
  const QRectF plot(QPointF(label + names + kGap, top + 4),
                    QPointF(size.width() - bar - 2 * kGap, size.height() - x_axis_height(figure.x)));
  const double width = plot.width() / std::max<double>(1, static_cast<double>(figure.categories.size()));
  const double height = plot.height() / std::max<double>(1, static_cast<double>(figure.series.size()));
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    const double y = plot.top() + height * static_cast<double>(s);
    draw_text(painter, plot.left() - kGap, y + height / 2, text(figure.series[s].name), 1);
    for (std::size_t c = 0; c < figure.categories.size(); ++c) {
      const QRectF cell(plot.left() + width * static_cast<double>(c), y, width, height);
      const auto& number = figure.series[s].y[c];
      const double t = number ? scale.position(*number) : 0;
      painter.setPen(QPen(Qt::white, kThin));
      painter.setBrush(number ? shade(t) : QColor(0xF2, 0xF2, 0xF2));
      painter.drawRect(cell);
      const QString shown = !number         ? QStringLiteral("none")
                            : figure.digits ? QString::number(*number, 'f', *figure.digits)
                                            : "";
      constexpr int kSmall = 7;
      constexpr double kLight = 0.6;  // of the scale: black is read better from here on
      if (text_width(shown, kSmall) < width - 2)
        draw_text(painter, cell.center().x(), cell.center().y(), shown, 0, kSmall,
                  !number      ? kQuiet
                  : t > kLight ? QColor(Qt::black)
                               : QColor(Qt::white));
    }
  }
  double free = -1e9;
  for (std::size_t c = 0; c < figure.categories.size(); ++c) {
    const QString name = text(figure.categories[c]);
    const double x = plot.left() + width * (static_cast<double>(c) + 0.5);
    if (x - text_width(name) / 2 < free) continue;
    draw_text(painter, x, plot.bottom() + 3 + text_height() / 2, name);
    free = x + text_width(name) / 2 + 3;
  }
  if (!figure.x.label.empty())
    draw_text(painter, plot.center().x(), size.height() - text_height() / 2, text(figure.x.label));
  if (!figure.y.label.empty())
    draw_rotated(painter, text_height() / 2, plot.center().y(), text(figure.y.label), 90, 0);
  // The scale.
  const QRectF legend(size.width() - kBar - 1, plot.top(), kBar, plot.height());
  constexpr int kSteps = 32;
  painter.setPen(Qt::NoPen);
  for (int i = 0; i < kSteps; ++i) {
    painter.setBrush(shade((i + 0.5) / kSteps));
    painter.drawRect(QRectF(legend.left(), legend.bottom() - legend.height() * (i + 1) / kSteps, kBar,
                            legend.height() / kSteps + 0.2));
  }
  draw_y_axis(painter, legend, scale, value, false);
}

}  // namespace stitchwork
