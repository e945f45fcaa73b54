#include "figures/paint/paint.h"

#include "figures/paint/canvas.h"
#include "figures/paint/kinds.h"

namespace stitchwork {

QFont figure_font(int points, bool bold) {
  QFont font(QStringLiteral("DejaVu Sans"));
  font.setPixelSize(points);  // a pixel of the painter is a point
  font.setBold(bold);
  font.setHintingPreference(QFont::PreferNoHinting);
  font.setKerning(false);
  return font;
}

QSizeF figure_size(const Figure& figure) {
  constexpr double kInch = 72, kColumn = 3.33, kPage = 7;
  const double width = figure.width == FigureWidth::kColumn ? kColumn : kPage;
  const double usual =
      figure.kind == FigureKind::kHeatmap ? 0.7 + 0.25 * static_cast<double>(figure.series.size()) : 2.0;
  return QSizeF(width, figure.height_in > 0 ? figure.height_in : usual) * kInch;
}

void paint(QPainter& painter, const Figure& figure, const QSizeF& size) {
  painter.save();
  constexpr double kMargin = 2;
  painter.translate(kMargin, kMargin);
  const QSizeF inner = size - QSizeF(2 * kMargin, 2 * kMargin);
  const bool bars = figure.kind == FigureKind::kBars || figure.kind == FigureKind::kStackedBars;
  const double top =
      figure.kind == FigureKind::kHeatmap ? 0 : draw_legend(painter, figure, inner.width(), !bars);
  if (bars)
    paint_bars(painter, figure, inner, top);
  else if (figure.kind == FigureKind::kHeatmap)
    paint_heatmap(painter, figure, inner, top);
  else
    paint_points(painter, figure, inner, top);
  painter.restore();
}

}  // namespace stitchwork
