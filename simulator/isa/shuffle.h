// Which lane each lane reads in a shuffle (PTX ISA, shfl.sync).
#pragma once

#include <cstdint>

namespace stitchwork::sim {

/// The lane that `lane` reads, itself where the one it asks for is out of range (then `*in_range` is false).
/// `mode`: 0 idx, 1 up, 2 down, 3 bfly; `b`, `c`: the instruction's operands.
constexpr std::int32_t shuffle_source(std::uint32_t mode, std::uint32_t lane, std::uint32_t b,
                                      std::uint32_t c, bool* in_range) {
  const std::uint32_t n = b & 0x1f, bound = c & 0x1f, segment = c >> 8 & 0x1f;
  const std::uint32_t max_lane = (lane & segment) | (bound & ~segment), min_lane = lane & segment;
  std::uint32_t from = 0;
  switch (mode) {
    case 0:
      from = min_lane | (n & ~segment);
      break;
    case 1:
      from = lane - n;
      break;
    case 2:
      from = lane + n;
      break;
    default:
      from = lane ^ n;
      break;
  }
  *in_range =
      mode == 1 ? static_cast<std::int32_t>(from) >= static_cast<std::int32_t>(max_lane) : from <= max_lane;
  return static_cast<std::int32_t>(*in_range ? from & 31 : lane);
}

}  // namespace stitchwork::sim
