// Figures as they are drawn (figures/draw/), on Qt's paper, and text beside them. Units are points (1/72
// inch).
#pragma once

#include <QColor>
#include <QFont>
#include <QRectF>
#include <QString>
#include <string>
#include <string_view>

#include "figures/data/figure.h"

class QPainter;

namespace stitchwork {

/// Into `place`, whose shape is the figure's. start_painting() and check() come first.
void paint(QPainter& painter, const Figure& figure, const QRectF& place);

/// DejaVu Sans of so many points, laid out alike at every resolution.
QFont figure_font(int points = 8, bool bold = false);

QColor colour(std::string_view hex);  ///< "#rrggbb"
QString text(const std::string& utf8);
double width_of(const QString& text, int points, bool bold = false);
/// Centred (0), left (-1) or right (1) aligned at x; y is the text's middle.
void paint_text(QPainter& painter, double x, double y, const QString& text, int align, int points,
                const QColor& ink);

}  // namespace stitchwork
