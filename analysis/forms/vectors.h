// mapping=tuned: how many bytes a thread of a finished kernel moves at a time.
#pragma once

#include "analysis/plan/plan.h"
#include "occupancy_model/hardware.h"

namespace stitchwork::astitch {

/// Vectors where most bytes that the elements of a group read and write can move in them, else none; then as
/// many vectors in flight as an SM needs to keep its memory busy and registers hold. `vector_bytes`: of the
/// widest array in a vector, at most.
void settle_vectors(const Computation& computation, const Device& device, KernelPlan& kernel,
                    int vector_bytes = kVectorBytes);

/// Single elements in place of vectors where the kernel is faster so: a warp has so many times as many
/// neighbours with vectors, and computes every piece of a concatenation that one of them is in.
void part_diverging_vectors(const Graph& graph, const Device& device, KernelPlan& kernel);

}  // namespace stitchwork::astitch
