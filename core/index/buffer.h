// Where the elements of a value lie in its buffer outside kernels.
#pragma once

#include <span>
#include <vector>

#include "core/index/index_map.h"

namespace stitchwork {

/// The shape of the array in `node`'s buffer: of an update in place the array that it updates, of a block the
/// matrix that it is one of, else the node's own.
const Shape& buffer_shape(const Node& node);

/// As `linearize` takes them: how far from each other indices lie in the buffer.
const std::vector<std::int64_t>& buffer_extents(const Node& node);

/// The element of the buffer at `index`: of an update in place from where it begins on.
IndexExpr buffer_offset(const Node& node, std::span<const IndexExpr> index);

}  // namespace stitchwork
