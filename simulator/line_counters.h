// Counters by line of the PTX.
#pragma once

#include <vector>

#include "simulator/scheduler.h"

namespace stitchwork::sim {

/// The counts of whole basic blocks, dealt to the lines of their instructions.
std::vector<LineCounters> line_counters(const LaunchContext& context, const ScheduleResult& result);

}  // namespace stitchwork::sim
