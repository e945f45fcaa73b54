// Which ops compute the same values, over several graphs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// Numbers of values, the same for what computes the same elements in the same order of the same parameters
/// (which agree by number): equal ops, attributes and operands. Shapes are no part of it, nor are layouts,
/// copies, dimensions of one element, the order of operands that commute, zeros that are added or taken away
/// (a zero's sign aside) and ones that are multiplied or divided by; and a number computed of numbers is
/// that.
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
  int value(const Graph& graph, const Computation& computation, const Node& node,
            const std::vector<int>& numbers, const std::vector<int>& callees);
  int unchanged(const Node& node, const std::vector<int>& numbers) const;
  std::shared_ptr<const Literal> folded(const Graph& graph, const Computation& computation, const Node& node,
                                        const std::vector<int>& numbers) const;
  int splat(const std::shared_ptr<const Literal>& element, const Shape& shape);

  std::unordered_map<std::string, int> numbers_;
  std::unordered_map<int, std::shared_ptr<const Literal>> splats_;  ///< arrays of one element everywhere: it
};

}  // namespace stitchwork
