// Rows that begin anywhere in memory (of 33 columns, say): those of a task are one range, which moves through
// shared memory in whole sectors, as many loads at a time as an SM wants; rows are computed from there.
#pragma once

#include "analysis/plan/plan.h"
#include "analysis/stitching/options.h"
#include "core/base/verdict.h"

namespace stitchwork::astitch {

/// Gives each staged group tiles for all it reads from and stores to global memory, element by element of its
/// domain, and the kernel the shared memory they take. Refused where some of that lies otherwise than the
/// domain: the mapping's lanes are then no way to read it. Shared memory may end up beyond what the device
/// has.
Verdict stage_rows(const Computation& computation, KernelPlan& kernel);

/// Takes away the tiles that nothing is read from any more, since its threads have kept it.
void drop_unread_tiles(const Computation& computation, KernelPlan& kernel);

}  // namespace stitchwork::astitch
