// cp.async: copies a thread has issued and not yet waited for.
#pragma once

#include <array>
#include <vector>

#include "simulator/machine.h"

namespace stitchwork::sim {

/// Of one warp. Groups are counted by each lane for itself.
struct AsyncCopies {
  struct Copy {
    const Inst* inst = nullptr;
    std::uint32_t group = 0;
    std::uint8_t lane = 0;
    std::uint8_t read = 0;  ///< bytes, the others are zeros
    std::uint64_t to = 0;   ///< shared memory offset
    std::array<std::byte, 16> data{};
  };
  std::vector<Copy> pending;  ///< in the order issued
  std::array<std::uint32_t, 32> committed{};
};

}  // namespace stitchwork::sim
