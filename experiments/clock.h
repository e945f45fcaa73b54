// The wall clock of trials.
#pragma once

#include <chrono>
#include <cstdint>

namespace stitchwork {

/// Nanoseconds since 1970.
inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace stitchwork
