// Whether a schedule is right: what a step reads has been written, by a thread that the reader has waited
// for.
#pragma once

#include <string>
#include <vector>

#include "analysis/schedule/schedule.h"

namespace stitchwork {

/// What is wrong with it, in words; empty: nothing. Looks at all pairs of steps whose bytes of shared memory
/// overlap, and at every value that a step takes from a register, from shared memory or from scratch; trusts
/// no pass that chose stages, places or registers. Those of place_problems are among them.
std::vector<std::string> schedule_problems(const Graph& graph, const Schedule& schedule);

/// Whether each place has what its readers take it for, the loops' tasks are all dealt to blocks of the grid,
/// tiles are filled for the tasks that read them, and every result of the kernel is stored.
std::vector<std::string> place_problems(const Graph& graph, const Schedule& schedule);

}  // namespace stitchwork
