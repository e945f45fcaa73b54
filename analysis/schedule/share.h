// Loops that are equal up to buffers and sizes (an optimiser's updates of 200 tensors) share one body.
#pragma once

#include "analysis/schedule/schedule.h"

namespace stitchwork {

/// Makes one loop with a table of entries (TaskLoop::entries) of the loops of a phase whose lowered form is
/// equal up to the buffers, the rows and the blocks: the same DAG of values and roots, element types, index
/// expressions and mapping. A task of a loop with one task may be lengthened to that of the others. To be
/// called before registers are kept and vectors chosen, which then see each body once.
void share_bodies(const Graph& graph, Schedule& kernel);

}  // namespace stitchwork
