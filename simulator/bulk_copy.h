// cp.async.bulk: copies of whole ranges between global and shared memory that go on beside the threads
// (PTX ISA 8.7, 9.7.9.25.4.1).
//
// What is read is moved as late as the model of memory allows: a load when somebody looks at the mbarrier it
// completes, a store when its thread waits for its group. A kernel that forgets either sees old contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/machine.h"

namespace stitchwork::sim {

/// Those of one block that are under way.
struct BulkCopies {
  /// Into the shared memory of this block; it may be issued by another one of the cluster.
  struct Load {
    const Inst* inst = nullptr;
    BlockRun* issuer = nullptr;
    int warp = 0, lane = 0;  ///< of the issuer; warp of its block
    const std::byte* from = nullptr;
    std::uint64_t to = 0;  ///< offset in shared memory
    std::uint32_t bytes = 0;
    std::uint64_t mbarrier = 0;  ///< its offset
  };
  /// From the shared memory of this block.
  struct Store {
    const Inst* inst = nullptr;
    int warp = 0, lane = 0;
    std::uint32_t group = 0;
    std::uint64_t from = 0;  ///< offset in shared memory
    std::byte* to = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t time = 0;  ///< of the sanitizers
    bool moved = false;      ///< its thread has waited until it was read
  };
  std::vector<Load> loads;
  std::vector<Store> stores;             ///< in the order issued
  std::vector<std::uint32_t> committed;  ///< groups, by thread; empty: none

  /// The load that is still writing some of [offset, offset + bytes), or null.
  const Load* writing(std::uint64_t offset, std::uint64_t bytes) const {
    for (const Load& c : loads)
      if (offset < c.to + c.bytes && c.to < offset + bytes) return &c;
    return nullptr;
  }
};

/// Round trips of bulk loads are counted in parts: of several under way at once each is its share of one.
inline constexpr std::uint64_t kBulkTripParts = 5040;

/// All loads that complete this mbarrier reach shared memory.
void land_bulk_loads(Strand& s, BlockRun& owner, std::uint64_t mbarrier);
/// Nothing may be under way to or from the shared memory of a block that has ended.
void check_bulk_copies_ended(BlockRun& block);

}  // namespace stitchwork::sim
