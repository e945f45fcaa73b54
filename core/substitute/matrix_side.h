// A dot's operands as matrices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// An array as a matrix, its leading dimensions the rows and the others the cols, of which a dot sums over
/// one.
struct MatrixSide {
  std::int64_t rows = 1, cols = 1;
  int contracted = 1;  ///< 0: the rows
  std::int64_t summed() const { return contracted == 0 ? rows : cols; }
  std::int64_t free() const { return contracted == 0 ? cols : rows; }
  bool operator==(const MatrixSide&) const = default;
};

/// Nothing unless `contracting` are ascending, one behind the other, at either end of the dimensions, and
/// others are beside them.
std::optional<MatrixSide> matrix_side(const std::vector<std::int64_t>& dims,
                                      const std::vector<std::int64_t>& contracting);

/// The contracted dimensions by those of the left side, ascending.
DotDims with_sorted_contraction(DotDims dims);

}  // namespace stitchwork
