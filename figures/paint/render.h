// PDF and PNG of figures as they are drawn (figures/draw/), without a screen. The same figure gives the same
// bytes, whenever it is made.
#pragma once

#include <stdexcept>
#include <string>

#include "figures/data/renderer.h"

namespace stitchwork {

/// The font that figures are set in is not there. (An exception of its own: the renderer's module holds
/// nothing of core.)
struct FontMissing : std::runtime_error {
  FontMissing() : runtime_error("the font DejaVu Sans, in which figures are set, is not installed") {}
  static constexpr const char* kHint = "install the Debian package fonts-dejavu-core";
};

/// Starts Qt on its offscreen platform where the program has not started it, and loads the font. Throws
/// FontMissing where there is none.
void start_painting();

/// PDF or PNG.
std::string render(const Figure& figure, FigureFormat format);
/// As PDF.
std::string render(const Document& document);

}  // namespace stitchwork
