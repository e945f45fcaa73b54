// What one library call does to a product that it computes: it stores it transposed, by the strides of its
// result, and adds to it: cuBLASLt's epilogue BIAS, and beta = 1 (cuBLAS, "cublasLtMatmul": D = A * B + C +
// bias).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// The product of f32, f16 or bf16 that a library makes as matrix products, a transpose of it that one call
/// may store, and sums that follow in the same type. The additions are rounded once, after all of them.
struct Epilogue {
  NodeId product = kNoNode;
  NodeId transpose = kNoNode;  ///< kNoNode: stored as the product has it
  NodeId bias = kNoNode;       ///< an element for each column of the product's matrices; kNoNode: none
  NodeId addend = kNoNode;     ///< an array of the product's elements, in memory; kNoNode: none
};

/// Of a call of these ops: its product, then what else it computes (a transpose, sums, views of the bias,
/// other names of values), ascending. Nothing where no call makes all of them.
std::optional<Epilogue> epilogue_of(const Computation& computation, std::span<const NodeId> call);

/// The calls that make `product` and a transpose, one or two sums that follow it, those of fewer first.
/// `users`: of every node. What they leave out nothing else reads.
std::vector<std::vector<NodeId>> calls_with_epilogue(const Computation& computation,
                                                     const std::vector<std::vector<NodeId>>& users,
                                                     NodeId product);

/// Of a call's ops, whether it is one that a kernel would compute else: a sum, or the transpose.
bool takes_from_kernels(const Node& node);

}  // namespace stitchwork
