// A dot as the matrix products a BLAS makes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

/// C[i, j] = sum over l of A[i, l] * B[l, j], for every combination of the batch loops' indices. Strides are
/// in elements.
struct Gemm {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;  ///< one of each pair is 1
  std::int64_t c_row = 0;                                   ///< C's cols are 1 apart
  struct Loop {
    std::int64_t extent = 1, a = 0, b = 0, c = 0;
    bool operator==(const Loop&) const = default;
  };
  std::vector<Loop> batch;  ///< outermost first
  bool exchanged = false;   ///< A is the dot's right operand, and B its left one
};

/// A dimension of a product as it lies in A, B and C, in elements; 0 in those that have not got it.
struct ProductAxis {
  std::int64_t extent = 1, a = 0, b = 0, c = 0;
};
/// C[batch, row, col] = sum over `contracted` of A * B; each list outermost first.
struct Product {
  std::vector<ProductAxis> batch, rows, cols, contracted;
};

/// Nothing where the contracted dimensions have no common stride or no operand dimension is contiguous.
std::optional<Gemm> gemm_of(Product product);

/// The products of `dot` over these operands, each stored row by row or as a block of a matrix that is.
/// Nothing where its contracted dimensions have no common stride or no operand dimension is contiguous.
/// `transposed`: C is stored as a transpose with these dimensions has it; the operands change places where
/// those of the left one then are contiguous.
std::optional<Gemm> gemm_of(const Node& dot, const Node& lhs, const Node& rhs,
                            std::span<const std::int64_t> transposed = {});

}  // namespace stitchwork
