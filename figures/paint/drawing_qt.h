// Drawings on Qt's paper: text stays text in PDF.
#pragma once

#include <QPen>

#include "figures/draw/drawing.h"

class QPainter;

namespace stitchwork {

class QtDrawing : public Drawing {
 public:
  /// `painter` outlives this; its unit is a point.
  explicit QtDrawing(QPainter& painter) : painter_(painter) {}

  void line(Point a, Point b, const Stroke& stroke) override;
  void rect(const Rect& rect, const Fill& fill, const Stroke& stroke) override;
  void circle(Point centre, double radius, const Fill& fill, const Stroke& stroke) override;
  void polygon(const std::vector<Point>& points, const Fill& fill, const Stroke& stroke) override;
  void polyline(const std::vector<Point>& points, const Stroke& stroke) override;
  void text(Point at, std::string_view utf8, int align, double points, std::string_view colour,
            double degrees) override;

 private:
  void set(const Fill& fill, const Stroke& stroke);
  QPainter& painter_;
};

}  // namespace stitchwork
