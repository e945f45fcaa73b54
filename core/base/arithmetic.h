// Integer arithmetic of sizes.
#pragma once

#include <cstdint>

namespace stitchwork {

/// How many parts of `b` cover `a`; a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The smallest multiple of `step` that is at least `value`.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return ceil_div(value, step) * step;
}

}  // namespace stitchwork
