// What kinds of figures share: pens, text, marks, hatches, the frame with its axes and the legend.
#pragma once

#include <QColor>
#include <QPainter>
#include <QRectF>
#include <QString>

#include "figures/data/figure.h"
#include "figures/data/palette.h"
#include "figures/paint/axis.h"

namespace stitchwork {

inline const QColor kInk(0x22, 0x22, 0x22), kGrid(0xDD, 0xDD, 0xDD), kQuiet(0x66, 0x66, 0x66);
inline constexpr double kThin = 0.5, kLine = 1.2;  ///< points

QColor colour(std::string_view hex);
QString text(const std::string& utf8);
double text_width(const QString& text, int points = 8, bool bold = false);
double text_height(int points = 8);

/// Centred (0), left (-1) or right (1) aligned at x; y is the text's middle.
void draw_text(QPainter& painter, double x, double y, const QString& text, int align = 0, int points = 8,
               const QColor& ink = kInk);
/// Reading upwards (90 degrees) or slanted, its end or middle at (x, y).
void draw_rotated(QPainter& painter, double x, double y, const QString& text, double degrees, int align,
                  int points = 8, const QColor& ink = kInk);

/// Filled, hatched and outlined as the style says.
void draw_bar(QPainter& painter, const QRectF& bar, const SeriesStyle& style);
void draw_mark(QPainter& painter, const QPointF& at, const SeriesStyle& style, double size = 4);
QPen line_pen(const SeriesStyle& style, double width = kLine);
void draw_error(QPainter& painter, double x, double low, double high);

/// The y axis with its gridlines, ticks and label, left of `plot`.
void draw_y_axis(QPainter& painter, const QRectF& plot, const Scale& scale, const FigureAxis& axis,
                 bool grid = true);
/// The x axis of numbers, below it.
void draw_x_axis(QPainter& painter, const QRectF& plot, const Scale& scale, const FigureAxis& axis);
QString tick_at(const Scale& scale, double value);
/// Room that the y axis' ticks and label take.
double y_axis_width(const Scale& scale, const FigureAxis& axis);
double x_axis_height(const FigureAxis& axis);

/// At the top, in as many lines as it takes; returns its height. Nothing for a single series without a name.
double draw_legend(QPainter& painter, const Figure& figure, double width, bool lines);

/// Dashed lines across the plot; the legend names them.
void draw_references(QPainter& painter, const QRectF& plot, const Scale& y, const Figure& figure);

}  // namespace stitchwork
