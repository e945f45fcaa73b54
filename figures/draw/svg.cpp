#include "figures/draw/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stitchwork {
namespace {

std::string escaped_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

/// To a thousandth of a point, without zeros behind.
std::string number(double value) {
  const double rounded = std::round(value * 1000) / 1000;
  return fmt::format("{:g}", std::abs(rounded) < 1e5 ? rounded + 0.0 : 0.0);
}

std::string paint_of(const Fill& fill, const Stroke& stroke) {
  std::string text = fill.colour.empty() ? " fill=\"none\"" : fmt::format(" fill=\"{}\"", fill.colour);
  if (!fill.colour.empty() && fill.opacity < 1)
    text += fmt::format(" fill-opacity=\"{}\"", number(fill.opacity));
  if (stroke.colour.empty()) return text;
  text += fmt::format(" stroke=\"{}\" stroke-width=\"{}\"", stroke.colour, number(stroke.width));
  for (std::size_t i = 0; i < stroke.dash.size(); ++i)
    text += (i == 0 ? " stroke-dasharray=\"" : ",") + number(stroke.dash[i] * stroke.width);
  return stroke.dash.empty() ? text : text + "\"";
}

std::string list(const std::vector<Point>& points) {
  std::string text;
  for (const Point& p : points)
    text += fmt::format("{}{},{}", text.empty() ? "" : " ", number(p.x), number(p.y));
  return text;
}

}  // namespace

void Svg::line(Point a, Point b, const Stroke& stroke) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", number(a.x), number(a.y),
                       number(b.x), number(b.y), paint_of({}, stroke));
}

void Svg::rect(const Rect& r, const Fill& fill, const Stroke& stroke) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>\n", number(r.left),
                       number(r.top), number(std::max(0.0, r.width())), number(std::max(0.0, r.height())),
                       paint_of(fill, stroke));
}

void Svg::circle(Point centre, double radius, const Fill& fill, const Stroke& stroke) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", number(centre.x), number(centre.y),
                       number(radius), paint_of(fill, stroke));
}

void Svg::polygon(const std::vector<Point>& points, const Fill& fill, const Stroke& stroke) {
  body_ += fmt::format("<polygon points=\"{}\"{}/>\n", list(points), paint_of(fill, stroke));
}

void Svg::polyline(const std::vector<Point>& points, const Stroke& stroke) {
  body_ += fmt::format("<polyline points=\"{}\"{} stroke-linejoin=\"round\"/>\n", list(points),
                       paint_of({}, stroke));
}

void Svg::text(Point at, std::string_view utf8, int align, double points, std::string_view colour,
               double degrees) {
  const char* const anchor = align < 0 ? "" : align == 0 ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
  const std::string place =
      degrees == 0 ? fmt::format("x=\"{}\" y=\"{}\"", number(at.x), number(at.y + kTextMiddle * points))
                   : fmt::format("transform=\"translate({},{}) rotate({})\" x=\"0\" y=\"{}\"", number(at.x),
                                 number(at.y), number(-degrees), number(kTextMiddle * points));
  body_ += fmt::format("<text {} font-size=\"{}\" fill=\"{}\"{}>{}</text>\n", place, number(points), colour,
                       anchor, escaped_text(utf8));
}

std::string Svg::file(Size size, double margin, std::string_view title, std::string_view description) const {
  constexpr double kMillimetres = 25.4 / 72;  // of a point
  // Verdana has the widths of DejaVu Sans: text fits also where only that is installed.
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}mm\" height=\"{1}mm\" viewBox=\"0 0 {2} {3}\">\n"
      "<title>{4}</title>\n<desc>{5}</desc>\n"
      "<g transform=\"translate({6},{6})\" font-family=\"DejaVu Sans, Verdana, "
      "sans-serif\">\n{7}</g>\n</svg>\n",
      number(size.width * kMillimetres), number(size.height * kMillimetres), number(size.width),
      number(size.height), escaped_text(title), escaped_text(description), number(margin), body_);
}

}  // namespace stitchwork
