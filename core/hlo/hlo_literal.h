// Constants in HLO text: scalars, nested arrays `{ { 1, 2 }, { 3, 4 } }`, tuples and complex numbers.
#pragma once

#include <string>

#include "core/graph/literal.h"
#include "core/hlo/hlo_lexer.h"

namespace stitchwork {

/// Reads a literal of `shape` at the cursor (default layout: text order is row-major order).
Literal read_literal(HloLexer& lexer, const Shape& shape);

/// HLO spelling. Floats have the fewest digits of HLO's two precisions that read back to the same bits.
std::string to_text(const Literal& literal);

}  // namespace stitchwork
