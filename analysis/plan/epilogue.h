// What one library call does to a product or convolution that it computes. A product: it stores it
// transposed, by the strides of its result, adds to it, and takes the larger of that and zero: cuBLASLt's
// epilogues BIAS, RELU and RELU_BIAS, and beta = 1 (cuBLAS, "cublasLtMatmul": D = act(A * B + C + bias)). A
// convolution likewise, never transposed (cuDNN, "cudnnConvolutionBiasActivationForward": y = act(alpha1 *
// conv(x) + alpha2 * z + bias), whose act is CUDNN_ACTIVATION_RELU or IDENTITY and no other).
// A product whose batch no stride goes through is one call that has its matrices listed (cuBLAS,
// "cublasGemmBatchedEx"), and adds nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// A product of f32, f16 or bf16 that a library makes as matrix products and a transpose of it that one call
/// may store, or a convolution that cuDNN makes; sums that follow in the same type, and the larger of them
/// and zero. All that is rounded once.
struct Epilogue {
  NodeId product = kNoNode;    ///< a dot or a convolution
  NodeId transpose = kNoNode;  ///< kNoNode: stored as the product has it
  /// An element for each column of the product's matrices, or feature of the convolution; kNoNode: none.
  NodeId bias = kNoNode;
  NodeId addend = kNoNode;  ///< an array of the product's elements, in memory; kNoNode: none
  NodeId relu = kNoNode;    ///< the larger of the sum and zero; kNoNode: none
};

/// Of a call of these ops: its product, then what else it computes (a transpose, sums, a maximum, views of
/// the bias, other names of values), ascending. Nothing where no call makes all of them.
std::optional<Epilogue> epilogue_of(const Computation& computation, std::span<const NodeId> call);

/// The calls that make `product`, a dot or a convolution, and a transpose, one or two sums, a maximum that
/// follow it, those of fewer first.
/// `users`: of every node. What they leave out nothing else reads.
std::vector<std::vector<NodeId>> calls_with_epilogue(const Computation& computation,
                                                     const std::vector<std::vector<NodeId>>& users,
                                                     NodeId product);

/// What the call does beside its product: "bias b, array c, ReLU".
std::string to_text(const Computation& computation, const Epilogue& epilogue);

/// Of a call's ops, whether it is one that a kernel would compute else: a sum, the maximum or the transpose.
bool takes_from_kernels(const Node& node);

}  // namespace stitchwork
