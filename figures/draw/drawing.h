// What figures are drawn with: shapes and text. Units are points; y grows downwards.
#pragma once

#include <string_view>
#include <vector>

namespace stitchwork {

struct Point {
  double x = 0, y = 0;
};

struct Size {
  double width = 0, height = 0;
};

struct Rect {
  double left = 0, top = 0, right = 0, bottom = 0;

  double width() const { return right - left; }
  double height() const { return bottom - top; }
  Point center() const { return {(left + right) / 2, (top + bottom) / 2}; }
};

/// "#rrggbb"; "" draws nothing.
struct Stroke {
  std::string_view colour;
  double width = 0.5;
  std::vector<double> dash = {};  ///< on, off, ... in widths; none: solid
};
struct Fill {
  std::string_view colour;
  double opacity = 1;
};

/// Where they are drawn: an SVG file (figures/draw/svg.h), or Qt's paper (figures/paint/).
class Drawing {
 public:
  Drawing() = default;
  Drawing(const Drawing&) = delete;
  Drawing& operator=(const Drawing&) = delete;
  virtual ~Drawing() = default;

  virtual void line(Point a, Point b, const Stroke& stroke) = 0;
  virtual void rect(const Rect& rect, const Fill& fill, const Stroke& stroke) = 0;
  virtual void circle(Point centre, double radius, const Fill& fill, const Stroke& stroke) = 0;
  virtual void polygon(const std::vector<Point>& points, const Fill& fill, const Stroke& stroke) = 0;
  virtual void polyline(const std::vector<Point>& points, const Stroke& stroke) = 0;
  /// Centred (0), left (-1) or right (1) aligned at `at.x`; `at.y` is the text's middle. Turned by so many
  /// degrees, upwards, about `at`.
  virtual void text(Point at, std::string_view utf8, int align, double points, std::string_view colour,
                    double degrees) = 0;
};

/// Of a text's middle above its baseline, in ems.
inline constexpr double kTextMiddle = 0.36;

}  // namespace stitchwork
