// Which values stay in registers from step to step of a task.
#pragma once

#include "analysis/schedule/schedule.h"

namespace stitchwork {

/// Fills `order` of every step, and `kept`: where steps of one task share a mapping, an element's value that
/// an earlier step computed is restored from registers while half of the register bound lasts (the other half
/// is for the arithmetic); beyond that it is loaded or computed again. A value takes registers from the step
/// that makes it to the last that reads it: a softmax's exponentials take over those of its inputs. Where a
/// block has a single task, values stay across grid barriers too (AStitch section 4.4 calls such values
/// resident). What is left of the registers lets the first step of a task load elements that only later ones
/// read.
void keep_values(const Graph& graph, Schedule& kernel);

}  // namespace stitchwork
