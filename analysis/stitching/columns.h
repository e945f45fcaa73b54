// When reductions are a thread a row, and how wide tiles of columns are: one rule for the paper's mapping and
// the tuned one (docs/planners/astitch.md).
#pragma once

#include <cstdint>

namespace stitchwork::astitch {

/// A thread reduces a row alone only if the row is this short (docs/planners/astitch.md) ...
inline constexpr std::int64_t kSerialColumns = 16;
/// ... and there are this many rows for each block of a wave.
/// A choice, not measured: a warp's lanes have a row each then.
inline constexpr std::int64_t kSerialRowsPerBlock = 32;
/// Rows side by side in a column tile: one warp reads a 128-byte line of 4-byte elements.
/// Derived from 128 bytes of a line and 4 of an element.
inline constexpr std::int64_t kColumnTileRows = 32;

}  // namespace stitchwork::astitch
