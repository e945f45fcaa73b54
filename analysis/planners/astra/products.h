// The matrix products of a graph, as Astra's enumerator sees them (docs/planners/astra.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/plan/recorder.h"
#include "core/base/verdict.h"
#include "core/graph/graph.h"

namespace stitchwork::astra {

/// The step of decisions about which products become one.
inline constexpr std::string_view kFusionStep = "astra.fusion";

/// An array as a matrix in memory: its leading dimensions are the rows, the others the cols.
struct Matrix {
  NodeId op = kNoNode;
  std::int64_t rows = 0, cols = 0;
  bool operator==(const Matrix&) const = default;
};

/// A matrix that a product reads, and which of its dimensions (0: the rows) is summed over.
struct Operand {
  Matrix matrix;
  int contracted = 1;
  std::int64_t summed() const { return contracted == 0 ? matrix.rows : matrix.cols; }
  std::int64_t free() const { return contracted == 0 ? matrix.cols : matrix.rows; }
  bool operator==(const Operand&) const = default;
};

/// A dot of two matrices: result[i, j] = sum over l of left[i, l] right[j, l], m x n x k of them. A transpose
/// that is the dot's only reader belongs to it, its sides swapped.
struct Product {
  NodeId dot = kNoNode;
  NodeId result = kNoNode;  ///< the dot, or the transpose that it took in
  Operand left, right;
  Matrix to;  ///< of `result`
  std::int64_t m() const { return left.free(); }
  std::int64_t n() const { return right.free(); }
  std::int64_t k() const { return left.summed(); }
};

struct Products {
  std::vector<Product> list;    ///< by dot, ascending
  std::vector<int> of_result;   ///< by op: the product whose result it is, or -1
  std::vector<NodeId> dots;     ///< every dot, ascending, products or not
  std::vector<bool> is_result;  ///< by op: the graph's result holds its value
  std::vector<bool> in_place;   ///< by op: somebody wants its array dense and by itself (astra.host-call)
  std::vector<NodeId> in_place_for;  ///< by op: who
};

/// Every dot of `computation` is in the list, or is refused: astra.batch-dims, astra.dtype, astra.layout,
/// astra.attributes, astra.host-call.
Products products(const Computation& computation, const std::vector<std::vector<NodeId>>& users,
                  Recorder& recorder);

}  // namespace stitchwork::astra
