// A scale of an array: what the scale rules, conv-scale and softmax-dot match.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "core/substitute/editor.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {

/// value * scale, or value / scale.
struct Scaled {
  NodeId node = kNoNode;
  Op op = Op::kMultiply;
  NodeId value = kNoNode;
  bool scale_first = false;  ///< scale * value
  Spread scale;              ///< over the node's dimensions
};

struct ScaledDot {
  std::size_t side = 0;  ///< of the dot's operand that is meant
  Scaled scaled;
};

/// `node` as a scaled value whose scale is the same along all dimensions but those it may use. Not of f16.
std::optional<Scaled> scaled(const View& view, const Node& node,
                             const std::function<bool(int axis)>& may_use);
/// `value` scaled likewise, dimension i of the scale's source being dimension axes[i] of it.
NodeId apply_scale(Editor& editor, const Scaled& scaled, NodeId value, const std::vector<int>& axes);

/// The scale that scale-out-of-dot takes out of this dot.
std::optional<ScaledDot> scale_of_dot(const View& view, NodeId place);

}  // namespace stitchwork::rewriting
