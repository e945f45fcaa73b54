// The judge of tiled products: operands whose sums are exact, so that results are equal or wrong.
#pragma once

#include <cstdint>

#include "analysis/facts/gemm.h"
#include "core/base/verdict.h"
#include "core/graph/literal.h"

namespace stitchwork {

/// Multiples of 1/8 from -1 to 1, by seed: sums of up to 2^18 products of them are exact in f32, in whatever
/// order they are taken.
Literal drawn_elements(std::int64_t elements, DType type, std::uint64_t seed);

/// C with the products that a Gemm describes in it, or added to it: summed in double, rounded once.
Literal host_product(const Gemm& gemm, const Literal& a, const Literal& b, Literal c,
                     bool accumulate = false);

/// Whether `made` is `right` element by element, those that no product has included.
Verdict equal_elements(const Literal& right, const Literal& made);

}  // namespace stitchwork
