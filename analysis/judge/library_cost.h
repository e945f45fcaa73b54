// Costs of library calls, from the plan alone (method "modelled").
#pragma once

#include <optional>
#include <span>

#include "core/graph/graph.h"
#include "occupancy_model/library.h"

namespace stitchwork {

/// The product that a dot or convolution is; nothing for other ops. `bytes` are those of its buffers.
/// A convolution counts every kernel position, padding and holes of dilations included. `tf32`:
/// MatrixProduct::allow_tf32.
std::optional<MatrixProduct> matrix_product(const Computation& computation, const Node& node,
                                            bool tf32 = false);

/// Of a call of a product with its epilogue (analysis/plan/epilogue.h), the product first: `bytes` are those
/// of what the call reads and of its result.
std::optional<MatrixProduct> matrix_product(const Computation& computation, std::span<const NodeId> call,
                                            bool tf32 = false);

/// Bytes of the buffers that a library call, copy or memset of `node` reads and writes; a memset only writes.
double call_bytes(const Computation& computation, const Node& node, bool reads);

}  // namespace stitchwork
