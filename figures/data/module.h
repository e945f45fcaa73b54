// What the renderer's module exports. Program and module are of one build: values pass as they are.
#pragma once

#include <string>

#include "figures/data/figure.h"
#include "figures/data/renderer.h"

namespace stitchwork {

/// Fills `bytes`, or `problem` with why it cannot.
using RenderFigure = void(const Figure& figure, FigureFormat format, std::string& bytes,
                          std::string& problem);
inline constexpr const char* kRenderFigure = "stitchwork_render_figure";

}  // namespace stitchwork
