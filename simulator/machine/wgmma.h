// wgmma: matrix products of a warpgroup, four warps whose first one's number is a multiple of four (PTX
// ISA 8.7, 9.7.15).
//
// A product is computed when it is issued. A warp that waits for products waits until all four have issued
// them, as the hardware computes them together: what comes behind may overwrite the matrices in shared
// memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/machine/block_run.h"
#include "simulator/machine/matrix.h"
#include "simulator/tensor_map.h"

namespace stitchwork::sim {

inline constexpr int kWarpgroupWarps = 4;

/// D[64][n] = A[64][k] B[k][n] + D.
struct WgmmaForm {
  int n = 0, k = 0;
  MatrixElement a{}, b{}, d{};
  bool a_in_registers = false, saturate = false;
  bool negates_a = false, negates_b = false;  ///< imm-scale -1
  bool m_major = false, n_major = false;      ///< imm-trans: of A, of B

  static constexpr int kM = 64, kMostN = 256, kMostK = 32;
  constexpr std::int64_t bits() const {
    return n / 8 | k << 8 | std::int64_t(a) << 16 | std::int64_t(b) << 20 | std::int64_t(d) << 24 |
           std::int64_t(a_in_registers) << 28 | std::int64_t(saturate) << 29 | std::int64_t(negates_a) << 30 |
           std::int64_t(negates_b) << 31 | std::int64_t(m_major) << 32 | std::int64_t(n_major) << 33;
  }
  static constexpr WgmmaForm of(std::int64_t bits) {
    const auto element = [&](int at) { return static_cast<MatrixElement>(bits >> at & 15); };
    const auto flag = [&](int at) { return (bits >> at & 1) != 0; };
    return {int(bits & 255) * 8,
            int(bits >> 8 & 255),
            element(16),
            element(20),
            element(24),
            flag(28),
            flag(29),
            flag(30),
            flag(31),
            flag(32),
            flag(33)};
  }
  /// Registers of a lane.
  constexpr int d_registers() const { return d == MatrixElement::kF16 ? n / 4 : n / 2; }
  constexpr int a_operands() const { return a_in_registers ? 4 : 1; }
  /// In front of D as it was: D, A, the descriptor of B, scale-d.
  constexpr int operands_before_c() const { return d_registers() + a_operands() + 2; }
};

/// Where the elements of a matrix are in shared memory (PTX ISA 8.7, 9.7.15.5.1): in chunks of 16 bytes.
struct MatrixDescriptor {
  std::uint64_t start = 0, leading = 0, stride = 0;  ///< bytes
  int base_offset = 0;
  Swizzle swizzle = Swizzle::kNone;

  static constexpr MatrixDescriptor of(std::uint64_t bits) {
    const auto bytes = [&](int at) { return (bits >> at & 0x3fff) << 4; };
    constexpr Swizzle kModes[] = {Swizzle::kNone, Swizzle::k128B, Swizzle::k64B, Swizzle::k32B};
    return {bytes(0), bytes(16), bytes(32), int(bits >> 49 & 7), kModes[bits >> 62]};
  }
  /// Of the chunk that holds elements of row `mn` (of A, or column of B) from `chunk` chunks on along k;
  /// K-major.
  constexpr std::uint64_t k_major(std::uint64_t mn, std::uint64_t chunk) const {
    const bool none = swizzle == Swizzle::kNone;
    return swizzled(start + mn / 8 * stride + mn % 8 * (none ? 16 : swizzle_span(swizzle)) +
                        chunk * (none ? leading : 16),
                    swizzle);
  }
  /// Of the chunk that holds elements k of rows (or columns) 8 chunk to 8 chunk + 7, of 16 bits; M- or
  /// N-major.
  constexpr std::uint64_t mn_major(std::uint64_t k, std::uint64_t chunk) const {
    if (swizzle == Swizzle::kNone) return start + chunk * stride + k % 8 * 16 + k / 8 * leading;
    const std::uint64_t span = swizzle_span(swizzle), chunks = span / 16;
    return swizzled(start + chunk % chunks * 16 + chunk / chunks * leading + k % 8 * span + k / 8 * stride,
                    swizzle);
  }
};

/// Those of one warp.
struct WarpProducts {
  std::uint32_t issued = 0;           ///< so far
  std::uint32_t completed = 0;        ///< of these, those that the warp has waited for
  std::vector<std::uint32_t> groups;  ///< `issued` at each commit_group that is not complete
  /// Of the sanitizers: product, and the time of what it read.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> reads;
};

/// A matrix descriptor has a base offset, which is not simulated: an Error.
[[noreturn]] void raise_base_offset(const Strand& s, const Inst* i);

}  // namespace stitchwork::sim
