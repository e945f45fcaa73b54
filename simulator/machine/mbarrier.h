// mbarrier objects: barriers in shared memory that count arrivals and bytes (PTX ISA 8.7, 9.7.13.15).
//
// What an object holds is kept beside the block, and its 8 bytes of shared memory say the same, so that an
// ordinary store over them is noticed by the next operation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/machine/block_run.h"

namespace stitchwork::sim {

/// Contents of an object (9.7.13.15.2) and how far it has come.
struct Mbarrier {
  /// Largest arrival count, and largest tx-count of either sign.
  static constexpr std::uint32_t kMaxCount = (1u << 20) - 1;
  static constexpr std::uint64_t kBytes = 8;

  std::uint64_t offset = 0;    ///< in the shared memory of its block
  std::uint32_t expected = 0;  ///< arrivals of the next phase
  std::uint32_t pending = 0;   ///< arrivals that the current phase still wants
  std::int32_t tx = 0;         ///< bytes that it still expects
  std::uint64_t phase = 0;     ///< that is incomplete; all before it are complete

  /// What shared memory holds of it.
  std::uint64_t bits() const;
  /// What an arrival returns: phase, object and pending arrivals before it.
  std::uint64_t state() const;
  /// "wants 2 more arrivals and 128 more bytes"
  std::string wants() const;
};

/// Those of one block.
struct Mbarriers {
  std::vector<Mbarrier> live;  ///< initialised and not invalidated

  Mbarrier* find(std::uint64_t offset) {
    for (Mbarrier& m : live)
      if (m.offset == offset) return &m;
    return nullptr;
  }
  /// The object that [offset, offset + bytes) overlaps, or null.
  Mbarrier* touched(std::uint64_t offset, std::uint64_t bytes) {
    for (Mbarrier& m : live)
      if (offset < m.offset + Mbarrier::kBytes && m.offset < offset + bytes) return &m;
    return nullptr;
  }
};

/// The block of an address of shared memory that a lane gives, and the offset there.
struct SharedPlace {
  BlockRun* block = nullptr;
  std::uint64_t offset = 0;
};
/// `remote`: may be of another block of the cluster. A finding where [address, address + bytes) is not in
/// shared memory or not aligned to `alignment`.
SharedPlace shared_place(Strand& s, const Inst* i, std::uint64_t address, std::uint64_t bytes,
                         unsigned alignment, bool remote, bool write, int warp, int lane);
/// The live object there, whole; or the finding that there is none.
Mbarrier& find_mbarrier(Strand& s, const Inst* i, const SharedPlace& place, int warp, int lane);
/// A lane announces an arrival at an mbarrier of its block when its copies are complete; returns the offset.
std::uint64_t expect_async_arrival(Strand& s, const Inst* i, int warp, int lane);
/// That arrival.
void arrive_after_copies(Strand& s, const Inst* i, std::uint64_t offset, int warp, int lane);
/// Bytes that have arrived for it.
void complete_tx(Strand& s, const Inst* i, BlockRun& owner, Mbarrier& m, std::uint32_t bytes, int warp,
                 int lane);

/// o: d or ~0, count, bytes, state or parity or ~0; o[4]: address.
const Inst* run_mbarrier(Strand& s, const Inst* i);
/// o: d, state.
const Inst* run_pending_count(Strand& s, const Inst* i);

}  // namespace stitchwork::sim
