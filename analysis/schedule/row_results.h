// Which values of rows need no shared memory.
#pragma once

#include "analysis/schedule/schedule.h"

namespace stitchwork {

/// The threads that share a row reduce it together, and all of them end up with the result (butterfly
/// shuffles). So what steps under the same row_pack mapping make of it, one value a row, each thread computes
/// for itself: such values stay in registers (TaskLoop::row_results) and leave shared memory where nobody
/// else reads them there, and stages that no shared memory ties any more become one. A softmax or layer norm
/// of a warp a row has no block barrier then. Loops with entries stay as they are.
void keep_row_results(const Computation& computation, Schedule& kernel);

}  // namespace stitchwork
