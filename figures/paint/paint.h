// Draws figures: on screen, in files and on paper alike. Units are points (1/72 inch).
#pragma once

#include <QFont>
#include <QSizeF>

#include "figures/data/figure.h"

class QPainter;

namespace stitchwork {

/// Of the whole figure: 3.33 or 7 inches wide.
QSizeF figure_size(const Figure& figure);

/// Into (0, 0) .. `size`, on what the painter has there. start_painting() and check() come
/// first.
void paint(QPainter& painter, const Figure& figure, const QSizeF& size);

/// DejaVu Sans of so many points, laid out alike at every resolution.
QFont figure_font(int points = 8, bool bold = false);

}  // namespace stitchwork
