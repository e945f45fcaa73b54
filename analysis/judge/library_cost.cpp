#include "analysis/judge/library_cost.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "analysis/plan/assemble.h"
#include "analysis/plan/traffic.h"
#include "core/base/sorted.h"
#include "core/graph/window.h"

namespace stitchwork {
namespace {

double extent(const Shape& shape, std::int64_t dim) {
  return static_cast<double>(shape.dims.at(static_cast<std::size_t>(dim)));
}

double product_of(const Shape& shape, const std::vector<std::int64_t>& dims) {
  double product = 1;
  for (const std::int64_t d : dims) product *= extent(shape, d);
  return product;
}

/// A narrower type that holds all values of a node, looking through widenings and ops that only move values.
std::optional<DType> narrow_type(const Computation& computation, NodeId id) {
  const Node& node = computation.node(id);
  switch (node.op) {
    case Op::kConvert: {
      const DType from = computation.node(node.operands[0]).shape.dtype;
      const bool widened = node.shape.dtype == DType::kF32 && (from == DType::kF16 || from == DType::kBF16);
      return widened ? std::optional(from) : std::nullopt;
    }
    case Op::kBitcast:
    case Op::kBroadcast:
    case Op::kCopy:
    case Op::kReshape:
    case Op::kReverse:
    case Op::kSlice:
    case Op::kTranspose:
      return narrow_type(computation, node.operands[0]);
    default:
      return std::nullopt;
  }
}

/// Of the buffers that a call reads, each once: of a tuple (what a loop's body is given) its elements.
double bytes_read(const Computation& computation, std::span<const NodeId> call) {
  std::vector<NodeId> buffers;
  for (const NodeId operand : call_operands(computation, call))
    buffers.push_back(buffer_of(computation, operand));
  sort_unique(buffers);
  double sum = 0;
  for (const NodeId buffer : buffers) sum += static_cast<double>(computation.node(buffer).shape.byte_size());
  return sum;
}

}  // namespace

std::optional<MatrixProduct> matrix_product(const Computation& computation, const Node& node, bool tf32) {
  if (node.op != Op::kDot && node.op != Op::kConvolution) return std::nullopt;
  const auto lhs = narrow_type(computation, node.operands[0]);
  const auto rhs = narrow_type(computation, node.operands[1]);
  const auto product = [&](double batch, double m, double n, double k) {
    return MatrixProduct{.batch = batch,
                         .m = m,
                         .n = n,
                         .k = k,
                         .operands = computation.node(node.operands[0]).shape.dtype,
                         .values = lhs == rhs ? lhs : std::nullopt,
                         .allow_tf32 = tf32,
                         .bytes = call_bytes(computation, node, true)};
  };
  if (node.op == Op::kDot && node.attrs.dot) {
    const auto& dot = *node.attrs.dot;
    const Shape& lhs = computation.node(node.operands[0]).shape;
    const Shape& rhs = computation.node(node.operands[1]).shape;
    const double batch = product_of(lhs, dot.lhs_batch), k = product_of(lhs, dot.lhs_contracting);
    if (batch * k == 0) return product(0, 0, 0, 0);
    return product(batch, static_cast<double>(lhs.elements_count()) / batch / k,
                   static_cast<double>(rhs.elements_count()) / batch / k, k);
  }
  if (node.op == Op::kConvolution) {
    const ConvolutionDims dims = parse_dim_labels(other_attribute(node, "dim_labels"));
    const Shape& kernel = computation.node(node.operands[1]).shape;
    const double features = extent(kernel, dims.kernel_output_feature);
    const auto groups = static_cast<double>(
        std::max(other_integer(node, "feature_group_count", 1), other_integer(node, "batch_group_count", 1)));
    if (features == 0) return product(0, 0, 0, 0);
    return product(groups, static_cast<double>(node.shape.elements_count()) / features, features / groups,
                   static_cast<double>(kernel.elements_count()) / features);
  }
  return std::nullopt;
}

std::optional<MatrixProduct> matrix_product(const Computation& computation, std::span<const NodeId> call,
                                            bool tf32) {
  std::optional<MatrixProduct> product = matrix_product(computation, computation.node(call.front()), tf32);
  if (!product || call.size() == 1) return product;
  const auto bytes = [&](NodeId id) { return static_cast<double>(computation.node(id).shape.byte_size()); };
  product->bytes = bytes(call.back());
  product->bytes += bytes_read(computation, call);
  return product;
}

double call_bytes(const Computation& computation, const Node& node, bool reads) {
  const auto bytes = [&](NodeId id) { return static_cast<double>(computation.node(id).shape.byte_size()); };
  return bytes(node.id) + (reads ? bytes_read(computation, {&node.id, 1}) : 0);
}

}  // namespace stitchwork
