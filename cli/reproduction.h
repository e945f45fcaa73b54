// What `reproduce` and `report --paper` share.
#pragma once

#include <string>
#include <vector>

#include "experiments/reproduce.h"
#include "figures/data/renderer.h"

namespace stitchwork {

/// As .html, .pdf or .md. Throws Error for other extensions, and for .pdf without a renderer.
void write_reproduction(const Reproduction& reproduction, const std::string& file);

/// The formats that this build draws.
std::vector<FigureFormat> drawn_formats();

}  // namespace stitchwork
