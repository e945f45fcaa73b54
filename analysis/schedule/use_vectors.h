// Loads and stores of several adjacent elements by one instruction.
#pragma once

#include "analysis/schedule/schedule.h"

namespace stitchwork {

/// Marks, in every step whose mapping asks for vectors or unrolling, the loads to issue ahead of the
/// arithmetic (Value::ahead) and the stores to gather (Target::vector): those of global memory whose elements
/// are adjacent and aligned along the lanes wherever a thread works. Buffers are aligned to 256 bytes,
/// scratch likewise. What is not marked moves element by element; which thread computes what is the
/// mapping's, the same for all.
void use_vectors(const Computation& computation, Schedule& kernel);

}  // namespace stitchwork
