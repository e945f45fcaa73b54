// Drawings as SVG.
#pragma once

#include <string>

#include "figures/draw/drawing.h"

namespace stitchwork {

class Svg : public Drawing {
 public:
  void line(Point a, Point b, const Stroke& stroke) override;
  void rect(const Rect& rect, const Fill& fill, const Stroke& stroke) override;
  void circle(Point centre, double radius, const Fill& fill, const Stroke& stroke) override;
  void polygon(const std::vector<Point>& points, const Fill& fill, const Stroke& stroke) override;
  void polyline(const std::vector<Point>& points, const Stroke& stroke) override;
  void text(Point at, std::string_view utf8, int align, double points, std::string_view colour,
            double degrees) override;

  /// The file, of so many points; what was drawn lies `margin` from its edges.
  std::string file(Size size, double margin, std::string_view title, std::string_view description) const;

 private:
  std::string body_;
};

}  // namespace stitchwork
