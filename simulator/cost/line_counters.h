// Counters by line of the PTX.
#pragma once

#include <vector>

#include "simulator/machine/block.h"

namespace stitchwork::sim {

/// The counts of whole basic blocks, dealt to the lines of their instructions.
/// `memory`: by Inst::id.
std::vector<LineCounters> line_counters(const LaunchContext& context,
                                        const std::vector<BasicBlockCount>& blocks,
                                        const std::vector<MemoryCounts>& memory);

}  // namespace stitchwork::sim
