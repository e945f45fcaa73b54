// Functions of complex numbers by functions of their parts.
#pragma once

#include <optional>
#include <span>

#include "core/passes/expand_ops.h"

namespace stitchwork {

/// The real and the imaginary parts of an array of complex numbers: two arrays of the same dimensions.
struct ComplexParts {
  NodeId re = kNoNode, im = kNoNode;
};

/// What an element-wise op that gives complex numbers gives for complex operands. nullopt: it is not written
/// here.
std::optional<ComplexParts> complex_function(Emitter& emit, Op op, std::span<const ComplexParts> operands);

/// |z|, which does not overflow before the result does.
NodeId complex_abs(Emitter& emit, ComplexParts z);

}  // namespace stitchwork
