// Which ops compute the same values, over several graphs.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// Numbers of values, the same for what computes the same elements in the same order of the same parameters
/// (which agree by number): equal ops, attributes and operands. Shapes are no part of it, nor are layouts,
/// copies, dimensions of one element and the order of operands that commute.
class ValueNumbers {
 public:
  /// Of the entry's ops.
  std::vector<int> of(const Graph& graph);
  /// Into `numbers`, op by op; `decide` may give an op another number than that of what it computes of those
  /// before.
  void of(const Graph& graph, std::vector<int>& numbers, const std::function<int(const Node&, int)>& decide);

 private:
  std::vector<int> computations(const Graph& graph);
  int number_of(std::string key);
  int value(const Computation& computation, const Node& node, const std::vector<int>& numbers,
            const std::vector<int>& callees);

  std::unordered_map<std::string, int> numbers_;
};

}  // namespace stitchwork
