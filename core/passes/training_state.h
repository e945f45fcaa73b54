// Which results of a training step are parameters of the next one.
#pragma once

#include <cstddef>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// A result that becomes a parameter.
struct FedBack {
  std::size_t result = 0;     ///< number of an element of the root's tuple; 0 where that is no tuple
  std::size_t parameter = 0;  ///< number
  bool operator==(const FedBack&) const = default;
};

/// Found by how optimizers write their step, element by element: a parameter reaches the result that replaces
/// it through element-wise ops of its shape alone (`w - rate * g`, `b * m + (1 - b) * g`), and of all results
/// only that one, but for those that replace others: Adam's step of `w` reads the moments, too, and gradients
/// that are parameters reach several. By number of the result.
std::vector<FedBack> training_state(const Graph& graph);

}  // namespace stitchwork
