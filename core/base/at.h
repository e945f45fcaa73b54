// Ids and counts are signed, places in a vector are not.
#pragma once

#include <cstddef>

namespace stitchwork {

/// The place in a vector of the thing numbered i, which is not negative.
constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace stitchwork
