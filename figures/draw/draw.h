// Figures drawn, without any toolkit: the same on every machine, as SVG the same bytes.
#pragma once

#include <string>

#include "figures/data/figure.h"
#include "figures/draw/drawing.h"

namespace stitchwork {

/// Of the whole figure, in points: 3.33 or 7 inches wide.
Size figure_size(const Figure& figure);

/// Into (0, 0) .. `size`; check() comes first.
void draw_figure(Drawing& drawing, const Figure& figure, Size size);

/// Around what draw_figure draws, in points: its size is the figure's less twice this.
inline constexpr double kFigureMargin = 2;

/// As an SVG file; check() comes first. Title and provenance are in it.
std::string figure_svg(const Figure& figure);

/// "experiment: sample; device: v100-sxm2".
std::string provenance_text(const Figure& figure);

}  // namespace stitchwork
