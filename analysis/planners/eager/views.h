// Tensors of an eager framework have strides, so that some ops only make another view of what they read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::eager {

/// The strides by which an array of these extents and strides is one of extents `to`, in the same order; none
/// where no strides are (the rule of PyTorch's Tensor.view: aten/src/ATen/TensorUtils.cpp, computeStride).
std::optional<std::vector<std::int64_t>> reshaped_strides(const std::vector<std::int64_t>& from,
                                                          const std::vector<std::int64_t>& strides,
                                                          const std::vector<std::int64_t>& to);

/// Which ops of a computation are views, and which of these something reads that takes no strides.
class Views {
 public:
  /// `graph`'s entry computation, which must outlive this.
  explicit Views(const Graph& graph);

  /// A transpose, broadcast or slice, or an immediate: no kernel computes it for itself unless it is dense.
  bool is_view(NodeId id) const { return at(id).view; }
  /// Whether it lies in memory as it is: a kernel writes it (PyTorch's contiguous()).
  bool is_dense(NodeId id) const { return at(id).dense_for != kNoNode; }
  /// The first op that wants it dense; the root where it is a result.
  NodeId dense_for(NodeId id) const { return at(id).dense_for; }
  /// Whether kernels compute the view where they read it.
  bool is_read_through(NodeId id) const { return at(id).view && !at(id).reshaped; }
  /// A copy that reads a view is the kernel which writes that.
  bool is_copy_step(const Node& node) const;

  /// The ops, and the views that they read through (immediates are no part of kernels). Both ascending.
  std::vector<NodeId> with_views(std::span<const NodeId> ops) const;

 private:
  struct Facts {
    bool view = false;
    bool reshaped = false;  ///< an op that is no kernel reads it in another shape, which has no strides
    NodeId dense_for = kNoNode;
    std::vector<std::int64_t> strides;
  };

  const Facts& at(NodeId id) const { return facts_[static_cast<std::size_t>(id)]; }
  Facts& at(NodeId id) { return facts_[static_cast<std::size_t>(id)]; }
  void find_strides(const Node& node);
  void want(NodeId value, NodeId reader);
  void find_dense(const Node& node);
  bool reads_by_maps(const Node& node) const;

  const Computation& computation_;
  std::vector<Facts> facts_;
};

}  // namespace stitchwork::eager
