// What the kernels of element-wise ops share, and those that are not in evaluator_elementwise.cpp.
#pragma once

#include "core/base/error.h"
#include "core/evaluate/evaluator_ops.h"

namespace stitchwork::elementwise_kernels {

[[noreturn]] inline void refuse(const Node& node, DType type) {
  throw Error(fmt::format("{} of {} cannot be computed", def(node.op).name, name(type)));
}

/// 0 for an operand of one element, else 1.
inline std::int64_t step(const Literal& literal) { return literal.shape.elements_count() == 1 ? 0 : 1; }

/// evaluator_convert.cpp
void convert(const Node& node, Values operands, Literal& result);
void bitcast_convert(const Node& node, Values operands, Literal& result);
void reduce_precision_kernel(const Node& node, Values operands, Literal& result);

}  // namespace stitchwork::elementwise_kernels
