#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "figures/draw/canvas.h"
#include "figures/draw/kinds.h"

namespace stitchwork {
namespace {

constexpr int kSmall = 6;  ///< points of numbers at bars
constexpr double kSlant = 35;

class BarPainter {
 public:
  BarPainter(Drawing& drawing, const Figure& figure) : drawing_(drawing), figure_(figure) {}

  void run(Size size, double top) {
    double low = 1e300, high = -1e300;
    for (std::size_t c = 0; c < figure_.categories.size(); ++c) span(c, low, high);
    for (const FigureReference& reference : figure_.references) high = std::max(high, reference.y);
    scale_ = scale_of(figure_.y, low, high, true, 5);
    plot_ = {y_axis_width(scale_, figure_.y), top + 3, size.width - 2, size.height};
    const double slot = plot_.width() / std::max<double>(1, static_cast<double>(figure_.categories.size()));
    plot_.bottom = size.height - labels_height(slot);
    // Numbers at the highest bars stay inside.
    if (figure_.digits && !stacked() && !figure_.y.high)
      scale_.high *= 1 + room_for_numbers(slot) / plot_.height();
    draw_y_axis(drawing_, plot_, scale_, figure_.y);
    draw_references(drawing_, plot_, scale_, figure_);  // behind the bars and their numbers
    for (std::size_t c = 0; c < figure_.categories.size(); ++c)
      draw_category(c, plot_.left + slot * static_cast<double>(c), slot);
    const double floor = at(scale_.logarithmic ? scale_.low : 0);
    drawing_.line({plot_.left, floor}, {plot_.right, floor}, {kInk, kThin});
    draw_labels(slot, size.height);
  }

 private:
  bool stacked() const { return figure_.kind == FigureKind::kStackedBars; }
  double at(double value) const {
    return plot_.bottom - std::clamp(scale_.position(value), 0.0, 1.0) * plot_.height();
  }
  double bar_width(double slot) const {
    constexpr double kFilled = 0.8;
    return slot * kFilled / (stacked() ? 1 : std::max<double>(1, static_cast<double>(figure_.series.size())));
  }
  std::string number(double value) const { return fmt::format("{:.{}f}", value, *figure_.digits); }
  /// Numbers stand upright where they fit above their bar, else they read upwards.
  bool upright(double slot) const {
    double widest = 0;
    for (const FigureSeries& series : figure_.series)
      for (const auto& y : series.y)
        if (y) widest = std::max(widest, text_width(number(*y), kSmall));
    return widest <= bar_width(slot) + 1;
  }
  double room_for_numbers(double slot) const {
    double widest = 0;
    for (const FigureSeries& series : figure_.series)
      for (const auto& y : series.y)
        if (y) widest = std::max(widest, text_width(number(*y), kSmall));
    return upright(slot) ? kSmall + 3 : widest + 4;
  }

  void span(std::size_t c, double& low, double& high) const {
    double sum = 0;
    for (const FigureSeries& series : figure_.series) {
      if (!series.y[c]) continue;
      sum = stacked() ? sum + *series.y[c] : *series.y[c];
      low = std::min(low, sum);
      high = std::max(high, sum);
      if (!series.interval.empty() && series.interval[c]) {
        low = std::min(low, series.interval[c]->first);
        high = std::max(high, series.interval[c]->second);
      }
    }
  }

  void draw_category(std::size_t c, double left, double slot) {
    const double width = bar_width(slot);
    const double begin =
        left + (slot - width * (stacked() ? 1 : static_cast<double>(figure_.series.size()))) / 2;
    double base = scale_.logarithmic ? scale_.low : 0;
    for (std::size_t s = 0; s < figure_.series.size(); ++s) {
      const FigureSeries& series = figure_.series[s];
      const double x = begin + (stacked() ? 0 : width * static_cast<double>(s));
      if (!series.y[c]) {
        if (!stacked())
          draw_rotated(drawing_, x + width / 2, plot_.bottom - 2, "none", 90, -1, kSmall, kQuiet);
        continue;
      }
      const double value = stacked() ? base + *series.y[c] : *series.y[c];
      const double y0 = at(base), y1 = at(value);
      draw_bar(drawing_, {x, std::min(y0, y1), x + width, std::max(y0, y1)}, series_style(s, series.style));
      double end = y1;
      if (!series.interval.empty() && series.interval[c]) {
        draw_error(drawing_, x + width / 2, at(series.interval[c]->first), at(series.interval[c]->second));
        end = std::min(end, at(series.interval[c]->second));
      }
      if (figure_.digits) draw_number(series.y[c].value(), x + width / 2, end, y0, slot);
      if (stacked()) base = value;
    }
  }

  void draw_number(double value, double x, double end, double base, double slot) {
    if (stacked()) {  // in the bar, where it has room
      if (std::abs(base - end) < kSmall + 2 || text_width(number(value), kSmall) > bar_width(slot) - 1)
        return;
      draw_backed(x, (base + end) / 2, text_width(number(value), kSmall), kSmall);
      draw_text(drawing_, x, (base + end) / 2, number(value), 0, kSmall);
    } else if (upright(slot)) {
      const double middle = end - kSmall / 2.0 - 1.5;
      draw_backed(x, middle, text_width(number(value), kSmall), kSmall);
      draw_text(drawing_, x, middle, number(value), 0, kSmall);
    } else {
      const double length = text_width(number(value), kSmall);
      draw_backed(x, end - 2.5 - length / 2, kSmall, length);
      draw_rotated(drawing_, x, end - 2.5, number(value), 90, -1, kSmall);
    }
  }

  /// White behind a number, so that lines and hatches do not run through it.
  void draw_backed(double x, double y, double width, double height) {
    drawing_.rect({x - width / 2 - 0.5, y - height / 2 - 0.5, x + width / 2 + 0.5, y + height / 2 + 0.5},
                  {"#ffffff", 0.88}, {});
  }

  bool slanted(double slot) const {
    return std::any_of(figure_.categories.begin(), figure_.categories.end(),
                       [&](const std::string& c) { return text_width(c) > slot - 2; });
  }
  double names_height(double slot) const {
    if (!slanted(slot)) return text_height();
    double longest = 0;
    for (const std::string& c : figure_.categories) longest = std::max(longest, text_width(c));
    // Where a group's name follows below, upright names keep to their bar.
    return figure_.groups.empty() ? longest * std::sin(kSlant * M_PI / 180) + text_height() * 0.8
                                  : longest + 2;
  }
  double labels_height(double slot) const {
    return 3 + names_height(slot) + (figure_.groups.empty() ? 0 : text_height() + 2) +
           (figure_.x.label.empty() ? 0 : text_height() + 1);
  }

  void draw_labels(double slot, double bottom) {
    for (std::size_t c = 0; c < figure_.categories.size(); ++c) {
      const double x = plot_.left + slot * (static_cast<double>(c) + 0.5), y = plot_.bottom + 3;
      const std::string& label = figure_.categories[c];
      if (!slanted(slot))
        draw_text(drawing_, x, y + text_height() / 2, label);
      else if (figure_.groups.empty())
        draw_rotated(drawing_, x + 2, y + text_height() / 2 - 1, label, kSlant, 1);
      else
        draw_rotated(drawing_, x, y + 1, label, 90, 1);
    }
    double x = plot_.left;
    const double y = plot_.bottom + 3 + names_height(slot) + text_height() / 2 + 2;
    for (std::size_t g = 0; g < figure_.groups.size(); ++g) {
      const double width = slot * figure_.groups[g].second;
      const std::string& name = figure_.groups[g].first;
      int points = 8;
      while (points > 5 && text_width(name, points) > width - 3) --points;
      draw_text(drawing_, x + width / 2, y, name, 0, points);
      x += width;
      if (g + 1 == figure_.groups.size()) break;
      drawing_.line({x, plot_.bottom}, {x, y + text_height() / 2 - 1}, {kQuiet, kThin});
    }
    if (!figure_.x.label.empty())
      draw_text(drawing_, plot_.center().x, bottom - text_height() / 2, figure_.x.label);
  }

  Drawing& drawing_;
  const Figure& figure_;
  Scale scale_;
  Rect plot_;
};

}  // namespace

void draw_bars(Drawing& drawing, const Figure& figure, Size size, double top) {
  BarPainter(drawing, figure).run(size, top);
}

}  // namespace stitchwork
