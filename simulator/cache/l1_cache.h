// The L1 cache as a block finds it: sectored, 4-way, least recently used, write-through. Lines of 128 bytes
// hold four 32-byte sectors that are filled one by one; a store goes on to L2 and leaves L1's lines as they
// are. (access_log.h looks the lines up.)
//
// Blocks of an SM share its L1. Which those are and how they take turns is the hardware's affair, so a block
// is given its share of the capacity, empty when it begins: hits in lines that another block brought are not
// counted, and counters do not hang on the order of blocks.
#pragma once

#include <cstdint>

#include "occupancy_model/device.h"

namespace stitchwork::sim {

inline constexpr std::int64_t kL1LineBytes = 128;

/// What L1 holds for one block: sets of kWays lines, latest first; line number << kLineShift |
/// dirty sectors << kDirtyShift | sectors. Only local memory is dirty.
struct L1Share {
  static constexpr std::uint32_t kWays = 4;
  static constexpr int kDirtyShift = 4, kLineShift = 8;
  static constexpr std::uint64_t kSectors = 15, kDirty = kSectors << kDirtyShift;
  std::uint64_t* lines = nullptr;
  std::uint32_t sets = 0;          ///< 0: no L1
  bool only_non_coherent = false;  ///< other loads go past it
};

/// Loads go past the device's L1 unless they are `ld.global.nc`.
bool l1_only_non_coherent(const Device& device);

/// Bytes of L1 for each of `blocks` that share an SM with so much shared memory each.
std::int64_t l1_bytes_a_block(const Device& device, std::int64_t shared_bytes, int blocks);

}  // namespace stitchwork::sim
