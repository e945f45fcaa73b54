// SI prefixes by name.
#pragma once

namespace stitchwork {

// SI prefix.
inline constexpr double kNanosecondsPerMicrosecond = 1e3;

}  // namespace stitchwork
