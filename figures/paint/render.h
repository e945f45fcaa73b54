// Figures as files, drawn without a screen. The same figure gives the same bytes, whenever it is drawn.
#pragma once

#include <string>

#include "figures/data/renderer.h"

namespace stitchwork {

/// Starts Qt on its offscreen platform where the program has not started it, and loads the font. Throws
/// Error where there is none.
void start_painting();

std::string render(const Figure& figure, FigureFormat format);
/// As PDF.
std::string render(const Document& document);

}  // namespace stitchwork
