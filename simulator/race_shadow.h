// Shadow memory of the race check: who touched a byte last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/race_clocks.h"

namespace stitchwork::sim {

/// What a warp did with one instruction while its clocks stood still.
struct AccessEvent {
  std::uint32_t block = 0;
  BlockClocks::Time time;
  std::uint32_t inst = 0;  ///< Inst::id
  std::uint16_t warp = 0;
  bool strong = false;
};

/// An event and the lane of it; 0: none.
class Toucher {
 public:
  Toucher() = default;
  Toucher(std::uint32_t event, int lane) : bits_(event << 6 | static_cast<std::uint32_t>(lane)) {}
  /// Of a value that several lanes read.
  static constexpr int kSeveral = 32;
  std::uint32_t event() const { return bits_ >> 6; }
  int lane() const { return static_cast<int>(bits_ & 63); }
  explicit operator bool() const { return bits_ != 0; }
  /// Events that fit.
  static constexpr std::uint32_t kMaxEvents = (1u << 26) - 1;

 private:
  std::uint32_t bits_ = 0;
};

/// The last writer, the last reader, and one reader before it that is not of its warp.
struct ShadowCell {
  Toucher write, reads[2];
};

/// Of an allocation or a block's shared memory. A cell stands for four bytes until an access touches fewer.
class RaceShadow {
 public:
  explicit RaceShadow(std::uint64_t bytes) : bytes_(bytes), cells_((bytes + 3) / 4) {}

  std::span<ShadowCell> cells(std::uint64_t offset, std::uint32_t bytes) {
    if (cell_bytes_ == 4 && ((offset | bytes) & 3) != 0) split();
    return std::span(cells_).subspan(offset / cell_bytes_, bytes / cell_bytes_);
  }
  std::uint32_t cell_bytes() const { return cell_bytes_; }

 private:
  void split() {
    std::vector<ShadowCell> fine(bytes_);
    for (std::uint64_t b = 0; b < bytes_; ++b) fine[b] = cells_[b / 4];
    cells_ = std::move(fine);
    cell_bytes_ = 1;
  }

  std::uint64_t bytes_;
  std::uint32_t cell_bytes_ = 4;
  std::vector<ShadowCell> cells_;
};

}  // namespace stitchwork::sim
