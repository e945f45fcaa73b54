// Ops whose elements come from one of several operands.
#pragma once

#include "core/graph/op.h"

namespace stitchwork {

/// An element of the result is one of one of the operands, by its index: generated code branches, and loads
/// from that operand alone.
inline bool chooses_operand(Op op) {
  return op == Op::kConcatenate || op == Op::kPad || op == Op::kDynamicUpdateSlice;
}

}  // namespace stitchwork
