// The kinds of figures. Each draws into (0, top) .. size, below the legend.
#pragma once

#include "figures/data/figure.h"
#include "figures/draw/drawing.h"

namespace stitchwork {

void draw_bars(Drawing& drawing, const Figure& figure, Size size, double top);
void draw_points(Drawing& drawing, const Figure& figure, Size size, double top);
void draw_heatmap(Drawing& drawing, const Figure& figure, Size size, double top);

}  // namespace stitchwork
