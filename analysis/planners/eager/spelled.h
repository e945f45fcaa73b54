// Functions of an eager framework's library by their form, in graphs that say nothing of where ops come from.
#pragma once

#include <string_view>
#include <vector>

#include "core/substitute/view.h"

namespace stitchwork::eager {

struct Spelled {
  std::string_view name;    ///< "sigmoid"; empty: no function ends with the op
  std::vector<NodeId> ops;  ///< ascending; of all but softmax nothing else reads any but the last
};

/// The function that ends with this op:
/// - sigmoid: 1 / (1 + exp(-x));
/// - softmax: e / sum(e) with e = exp(x), or exp(x - max(x)), the sum and the maximum over the same
/// dimensions;
/// - sigmoid backward: g * (s * (1 - s)), as JAX differentiates s = sigmoid(x);
/// - tanh backward: u + u * t with u = g * (1 - t), as JAX differentiates t = tanh(x).
Spelled spelled_function(const rewriting::View& view, const Node& last);

}  // namespace stitchwork::eager
