// Which products a product comes from (Astra, section 4.4.1: "the same provenance (wrt GEMM nodes only)").
#pragma once

#include <vector>

#include "analysis/planners/astra/ladders.h"

namespace stitchwork::astra {

/// By ladder: a number for the set of dots that reach it, itself aside; equal numbers have equal sets, so
/// none of them reaches another. Of more than `most_dots` dots ladders with equal sets may have different
/// numbers: a set is then told by the sets that it was joined from.
std::vector<int> provenance(const Computation& computation, const Products& products,
                            const std::vector<Ladder>& ladders, std::size_t most_dots);

/// A choice, not measured: the sets of so many dots take 32 MB, and the largest model here, GNMT, has 9,485.
inline constexpr std::size_t kMostDotsOfSets = 16'384;

}  // namespace stitchwork::astra
