// The kinds of figures. Each draws into (0, top) .. size, below the legend.
#pragma once

#include <QPainter>

#include "figures/data/figure.h"

namespace stitchwork {

void paint_bars(QPainter& painter, const Figure& figure, const QSizeF& size, double top);
void paint_points(QPainter& painter, const Figure& figure, const QSizeF& size, double top);
void paint_heatmap(QPainter& painter, const Figure& figure, const QSizeF& size, double top);

}  // namespace stitchwork
