// The address map of the simulated device.
#pragma once

#include <cstdint>

namespace stitchwork::sim {

/// Address map of the simulated device: bits 40 and up name the allocation, so that finding it is a shift and
/// an overrun of less than a terabyte cannot land in a neighbour. 0 is never mapped.
inline constexpr int kAllocationShift = 40;
/// The offset within its allocation that an address has.
inline constexpr std::uint64_t kAllocationOffsetMask = (std::uint64_t{1} << kAllocationShift) - 1;
/// In the allocation or window that a generic address names.
constexpr std::uint64_t offset_of(std::uint64_t address) { return address & kAllocationOffsetMask; }
inline constexpr std::uint64_t kSharedWindow = 1;
inline constexpr std::uint64_t kLocalWindow = 2;
inline constexpr std::uint64_t kParamWindow = 3;
inline constexpr std::uint64_t kFirstAllocation = 16;
/// Bits of a shared memory address from here on are the rank of its block in the cluster (cluster.h).
inline constexpr int kClusterRankShift = 24;
/// Bits of a line's number (address / 128) from here on name the window or allocation.
inline constexpr int kLineOfWindowShift = kAllocationShift - 7;

}  // namespace stitchwork::sim
