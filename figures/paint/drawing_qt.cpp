#include "figures/paint/drawing_qt.h"

#include <QPainter>
#include <QPolygonF>

#include "figures/paint/paint.h"

namespace stitchwork {
namespace {

QPointF point(Point p) { return {p.x, p.y}; }

QPolygonF polygon_of(const std::vector<Point>& points) {
  QPolygonF polygon;
  for (const Point& p : points) polygon << point(p);
  return polygon;
}

}  // namespace

void QtDrawing::set(const Fill& fill, const Stroke& stroke) {
  QColor inside = colour(fill.colour);
  inside.setAlphaF(static_cast<float>(fill.opacity));
  painter_.setBrush(fill.colour.empty() ? QBrush(Qt::NoBrush) : QBrush(inside));
  if (stroke.colour.empty()) return painter_.setPen(Qt::NoPen);
  QPen pen(colour(stroke.colour), stroke.width, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin);
  if (!stroke.dash.empty()) pen.setDashPattern(QList<qreal>(stroke.dash.begin(), stroke.dash.end()));
  painter_.setPen(pen);
}

void QtDrawing::line(Point a, Point b, const Stroke& stroke) {
  set({}, stroke);
  painter_.drawLine(point(a), point(b));
}

void QtDrawing::rect(const Rect& rect, const Fill& fill, const Stroke& stroke) {
  set(fill, stroke);
  painter_.drawRect(QRectF(QPointF(rect.left, rect.top), QPointF(rect.right, rect.bottom)));
}

void QtDrawing::circle(Point centre, double radius, const Fill& fill, const Stroke& stroke) {
  set(fill, stroke);
  painter_.drawEllipse(point(centre), radius, radius);
}

void QtDrawing::polygon(const std::vector<Point>& points, const Fill& fill, const Stroke& stroke) {
  set(fill, stroke);
  painter_.drawPolygon(polygon_of(points));
}

void QtDrawing::polyline(const std::vector<Point>& points, const Stroke& stroke) {
  set({}, stroke);
  QPen pen = painter_.pen();
  pen.setJoinStyle(Qt::RoundJoin);
  painter_.setPen(pen);
  painter_.drawPolyline(polygon_of(points));
}

void QtDrawing::text(Point at, std::string_view utf8, int align, double points, std::string_view ink,
                     double degrees) {
  painter_.save();
  painter_.translate(at.x, at.y);
  painter_.rotate(-degrees);
  paint_text(painter_, 0, 0, stitchwork::text(std::string(utf8)), align, static_cast<int>(points),
             colour(ink));
  painter_.restore();
}

}  // namespace stitchwork
