// Figures of a paper's tables, as paper.json describes them (docs/experiments.md, "Papers").
#pragma once

#include "experiments/reproduce_values.h"

namespace stitchwork {

Figure figure_of(const JsonCursor& description, const ReproducedTable& table, const ValueContext& context);

}  // namespace stitchwork
