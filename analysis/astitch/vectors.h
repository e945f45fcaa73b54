// mapping=tuned: how many bytes a thread of a finished kernel moves at a time.
#pragma once

#include "analysis/plan.h"

namespace stitchwork::astitch {

/// Vectors where most bytes that the elements of a group read and write can move in them, else none; then as
/// many vectors in flight as an SM needs to keep its memory busy and registers hold.
void settle_vectors(const Computation& computation, const Device& device, KernelPlan& kernel);

}  // namespace stitchwork::astitch
