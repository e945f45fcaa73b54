// Shadow memory of the race check: who touched a byte last.
//
// Memory is looked at in sectors of 32 bytes. Mostly the lanes of one instruction touch a whole sector one
// after another, or all of them together: then one entry of 16 bytes says who wrote and who read it. A sector
// that was touched in other ways is divided into cells, each with writer and readers of its own, until a
// store covers it again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/check/race_clocks.h"
#include "simulator/check/zero_pages.h"

namespace stitchwork::sim {

/// What a warp did with one instruction while its clocks stood still.
struct AccessEvent {
  std::uint32_t block = 0;
  BlockClocks::Time time;
  static constexpr std::uint32_t kInstMask = (1u << 23) - 1;
  std::uint32_t inst : 23 = 0;  ///< Inst::id
  std::uint32_t warp : 6 = 0;   ///< or one of the kBulk... clocks
  std::uint32_t strong : 1 = 0;
  std::uint32_t scope : 2 = static_cast<std::uint32_t>(Scope::kDevice);  ///< of one that is strong
};
static_assert(kActors <= 64 && sizeof(AccessEvent) == 16);
/// Events are numbered from 1. They stay where they are, in chunks.
class AccessEvents {
 public:
  /// `many`: of a launch, not of one block at a time.
  explicit AccessEvents(bool many) : log2_(many ? 17 : 10), large_(many) {}
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() { size_ = 0; }
  const AccessEvent& operator[](std::size_t i) const {
    return chunks_[i >> log2_][i & ((std::size_t{1} << log2_) - 1)];
  }
  void push_back(const AccessEvent& event) {
    if (size_ >> log2_ == chunks_.size())
      chunks_.push_back(zero_pages<AccessEvent>(std::size_t{1} << log2_, large_));
    chunks_[size_ >> log2_][size_ & ((std::size_t{1} << log2_) - 1)] = event;
    ++size_;
  }

 private:
  int log2_;  ///< events a chunk
  bool large_;
  std::size_t size_ = 0;
  std::vector<ZeroPages<AccessEvent>> chunks_;
};

/// An event and the lane of it; 0: none.
class Toucher {
 public:
  Toucher() = default;
  Toucher(std::uint32_t event, int lane) : bits_(event << 6 | static_cast<std::uint32_t>(lane)) {}
  /// Of a value that several lanes read.
  static constexpr int kSeveral = 32;
  /// Of no lane: no lane's program orders it.
  static constexpr int kNobody = 33;
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

/// The lanes of one instruction that touch a sector: byte b is touched by lane first + (b >> shift), or by
/// several lanes.
class SectorLanes {
 public:
  SectorLanes() = default;
  SectorLanes(int first, int shift) : bits_(static_cast<std::uint8_t>(first | shift << 5)) {}
  static SectorLanes several() { return {0, kSeveral}; }
  bool are_several() const { return bits_ >> 5 == kSeveral; }
  int lane_of(std::uint32_t byte) const {
    return are_several() ? Toucher::kSeveral : (bits_ & 31) + static_cast<int>(byte >> (bits_ >> 5));
  }
  /// Of what one lane touches; of a sector that is touched by several lanes: the sector's.
  int bytes_log2() const { return std::min(bits_ >> 5, 5); }
  /// Each byte is touched by the same one lane in both.
  bool same_one(SectorLanes other) const { return bits_ == other.bits_ && !are_several(); }
  /// No byte is touched by the same one lane in both.
  bool apart(SectorLanes other) const {
    return are_several() || other.are_several() || (bits_ >> 5 == other.bits_ >> 5 && bits_ != other.bits_);
  }

 private:
  static constexpr int kSeveral = 6;
  std::uint8_t bits_ = 0;
};

/// Who touched a sector, or where its cells are. All zero: nobody.
struct ShadowSector {
  enum Place : std::uint8_t { kWrite, kRead, kOtherRead };  ///< as in ShadowCell
  std::uint32_t events[3];  ///< 0: none; divided: [0] tells where the cells are
  SectorLanes lanes[3];
  std::uint8_t cells_log2;  ///< 0: not divided
};

/// Of an allocation or a block's shared memory.
class RaceShadow {
 public:
  static constexpr std::uint32_t kSectorBytes = 32;

  RaceShadow() = default;
  explicit RaceShadow(std::uint64_t bytes);
  bool covers(std::uint64_t bytes) const { return count_ * kSectorBytes >= bytes; }
  /// Nobody has touched anything.
  void clear();

  ShadowSector& sector(std::uint64_t offset) { return sectors_[offset / kSectorBytes]; }
  /// Has the cells fetched of a sector that is already.
  void prefetch(std::uint64_t offset) {
    const ShadowSector& s = sector(offset);
    if (s.cells_log2 == 0) return;
    const auto* cell = cells(s).data() + (offset % kSectorBytes >> cell_log2(s));
    __builtin_prefetch(cell);
  }
  static std::uint32_t cell_bytes(const ShadowSector& s) { return kSectorBytes >> s.cells_log2; }
  static int cell_log2(const ShadowSector& s) { return kFinestLog2 - s.cells_log2; }
  /// Of a divided sector.
  std::span<ShadowCell> cells(const ShadowSector& s) const {
    return {cell_groups_[s.events[0] / kChunkGroups][s.events[0] % kChunkGroups].data(),
            std::size_t{1} << s.cells_log2};
  }
  /// The cells of an access, which lies in one sector and is aligned to its width or to four bytes: the
  /// sector is divided finely enough for it.
  std::span<ShadowCell> cells(ShadowSector& s, std::uint64_t offset, std::uint32_t bytes) {
    if (s.cells_log2 == 0 || ((offset | bytes) & (cell_bytes(s) - 1)) != 0) divide_for(s, offset | bytes);
    const int cell = cell_log2(s);
    return cells(s).subspan(offset % kSectorBytes >> cell, bytes >> cell);
  }
  /// Whether both were touched where one was written: no clocks order them.
  bool meets(const RaceShadow& other) const;
  /// Cells that would take more throw Error.
  void bound_cells(std::uint64_t bytes) {
    most_groups_ = std::max<std::uint64_t>(bytes / sizeof(CellGroup), 1024);
  }
  /// Forgets the cells of a divided sector and who touched them.
  void join(ShadowSector& s);

 private:
  /// The coarsest cells, of four bytes: eight a sector. Finer ones take two or four such groups in a row.
  static constexpr int kCoarsestLog2 = 3, kFinestLog2 = 5;
  using CellGroup = std::array<ShadowCell, 1u << kCoarsestLog2>;
  static constexpr std::uint32_t kChunkGroups = kLargePage / sizeof(CellGroup) / 4 * 4;

  /// Worth large pages.
  bool large() const { return count_ * sizeof(ShadowSector) >= kLargePage / 2; }
  /// Into cells that accesses of that alignment consist of.
  void divide_for(ShadowSector& s, std::uint64_t alignment);
  void divide(ShadowSector& s, int cells_log2);
  std::uint32_t take_groups(int cells_log2);
  /// Bytes of a sector, a bit each.
  struct Touched {
    std::uint32_t written = 0, any = 0;
  };
  Touched touched(const ShadowSector& s) const;

  ZeroPages<ShadowSector> sectors_;
  std::uint64_t count_ = 0;
  std::vector<ZeroPages<CellGroup>> cell_groups_;  ///< in chunks, which stay where they are
  std::uint32_t groups_used_ = 0;
  std::uint64_t most_groups_ = ~std::uint64_t{0};
  std::array<std::vector<std::uint32_t>, kFinestLog2 - kCoarsestLog2 + 1> groups_free_;  ///< by size
};

}  // namespace stitchwork::sim
