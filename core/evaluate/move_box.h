// Elements moved between literals.
#pragma once

#include "core/graph/dtype_dispatch.h"
#include "core/graph/literal.h"
#include "core/index/strided.h"

namespace stitchwork {

/// Copies elements between literals of one dtype: array 0 of the box is the result, array 1 the operand.
inline void move_box(const StridedBox<2>& box, Literal& to, const Literal& from) {
  with_width(to.shape.dtype, [&](auto tag) {
    using T = decltype(tag);
    copy_box(box, to.data<T>(), from.data<T>(), [](T value) { return value; });
  });
}

}  // namespace stitchwork
