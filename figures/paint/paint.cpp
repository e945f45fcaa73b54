#include "figures/paint/paint.h"

#include <QFontMetricsF>
#include <QPainter>

#include "figures/draw/draw.h"
#include "figures/paint/drawing_qt.h"

namespace stitchwork {

void paint(QPainter& painter, const Figure& figure, const QRectF& place) {
  const Size size = figure_size(figure);
  painter.save();
  painter.translate(place.topLeft());
  painter.scale(place.width() / size.width, place.height() / size.height);
  painter.translate(kFigureMargin, kFigureMargin);
  QtDrawing drawing(painter);
  draw_figure(drawing, figure, {size.width - 2 * kFigureMargin, size.height - 2 * kFigureMargin});
  painter.restore();
}

QColor colour(std::string_view hex) {
  return QColor(QString::fromLatin1(hex.data(), static_cast<qsizetype>(hex.size())));
}

QFont figure_font(int points, bool bold) {
  QFont font(QStringLiteral("DejaVu Sans"));
  font.setPixelSize(points);  // a pixel of the painter is a point
  font.setBold(bold);
  font.setHintingPreference(QFont::PreferNoHinting);
  font.setKerning(false);
  return font;
}

QString text(const std::string& utf8) {
  return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size()));
}

double width_of(const QString& text, int points, bool bold) {
  return QFontMetricsF(figure_font(points, bold)).horizontalAdvance(text);
}

void paint_text(QPainter& painter, double x, double y, const QString& text, int align, int points,
                const QColor& ink) {
  painter.setFont(figure_font(points));
  painter.setPen(ink);
  const double width = width_of(text, points);
  painter.drawText(QPointF(align < 0    ? x
                           : align == 0 ? x - width / 2
                                        : x - width,
                           y + kTextMiddle * points),
                   text);
}

}  // namespace stitchwork
