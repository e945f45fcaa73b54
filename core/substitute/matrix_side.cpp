#include "core/substitute/matrix_side.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stitchwork {

std::optional<MatrixSide> matrix_side(const std::vector<std::int64_t>& dims,
                                      const std::vector<std::int64_t>& contracting) {
  const std::size_t summed = contracting.size();
  if (summed == 0 || summed >= dims.size()) return std::nullopt;
  for (std::size_t i = 1; i < summed; ++i)
    if (contracting[i] != contracting[0] + static_cast<std::int64_t>(i)) return std::nullopt;
  const std::size_t first = static_cast<std::size_t>(contracting[0]);
  if (first != 0 && first + summed != dims.size()) return std::nullopt;
  MatrixSide side;
  side.contracted = first == 0 ? 0 : 1;
  const std::size_t rows = first == 0 ? summed : first;
  for (std::size_t d = 0; d < dims.size(); ++d) (d < rows ? side.rows : side.cols) *= dims[d];
  return side;
}

DotDims with_sorted_contraction(DotDims dims) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::size_t i = 0; i < dims.lhs_contracting.size(); ++i)
    pairs.emplace_back(dims.lhs_contracting[i], dims.rhs_contracting[i]);
  std::sort(pairs.begin(), pairs.end());
  for (std::size_t i = 0; i < pairs.size(); ++i)
    std::tie(dims.lhs_contracting[i], dims.rhs_contracting[i]) = pairs[i];
  return dims;
}

}  // namespace stitchwork
