// The one layout op that an index map is, if it is one.
#pragma once

#include <optional>

#include "core/graph/graph.h"
#include "core/index/index_map.h"

namespace stitchwork::rewriting {

struct SingleOp {
  Op op = Op::kReshape;
  Attributes attrs;
};

/// `map`: from the elements of `to` to those of `from`, simplified. nullopt where no reshape, transpose,
/// slice, broadcast or reverse alone does it, and where there are no elements.
std::optional<SingleOp> single_op(const IndexMap& map, const Shape& from, const Shape& to);

}  // namespace stitchwork::rewriting
