// How wide text is in DejaVu Sans, without the font: figures are laid out alike on every machine.
#pragma once

#include <string_view>

namespace stitchwork {

/// Points that UTF-8 text of so many points takes, unhinted and without kerning.
double text_width(std::string_view utf8, double points = 8);

/// Of a line with what is between lines.
double text_height(double points = 8);

}  // namespace stitchwork
