// cp.async.bulk: copies of whole ranges between global and shared memory, or from shared memory to that of a
// block of the cluster, that go on beside the threads (PTX ISA 8.7, 9.7.9.25.4.1).
//
// What is read is moved as late as the model of memory allows: a load when somebody looks at the mbarrier it
// completes, a store when its thread waits for its group. A kernel that forgets either sees old contents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/machine/atomics.h"
#include "simulator/machine/block_run.h"
#include "simulator/machine/mbarrier.h"
#include "simulator/machine/wgmma.h"

namespace stitchwork::sim {

/// Inst::flags of bulk copies, beside kBulkRemote: o[4] is a mask of ranks.
inline constexpr std::uint8_t kBulkMulticast = 2;

/// What a tensor copy moves (tensor_copy.cpp): the parts of a box's rows, and where they are in shared
/// memory.
struct TensorBox {
  struct Part {
    std::uint32_t at = 0;  ///< behind the box's first byte
    std::uint32_t bytes = 0;
    std::byte* global = nullptr;  ///< null: outside the tensor
  };
  std::vector<Part> parts;
  std::uint64_t fill = 0;  ///< an element outside the tensor
  unsigned element_bytes = 1;
  std::optional<AtomicOp> reduction;  ///< of a store

  void load(std::byte* shared) const;
  void store(const std::byte* shared) const;
};

/// Of global memory.
struct GlobalRange {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
};

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
    std::uint64_t mbarrier = 0;            ///< its offset
    std::shared_ptr<const TensorBox> box;  ///< of a tensor copy, in place of `from`
    std::optional<std::uint64_t> source;   ///< `from` is this offset in the issuer's shared memory
    /// Of st.async and red.async, which are no bulk copies: what is stored, in place of `from`.
    bool of_registers = false;
    std::array<std::byte, 16> values{};
    std::optional<AtomicOp> reduction;  ///< of elements of so many bytes
    std::uint32_t element_bytes = 0;

    /// To there.
    void land(std::byte* shared) const;
    const char* name() const { return of_registers ? "asynchronous store" : "bulk copy"; }
  };
  /// From the shared memory of this block.
  struct Store {
    const Inst* inst = nullptr;
    int warp = 0, lane = 0;
    std::uint32_t group = 0;
    std::uint64_t from = 0;  ///< offset in shared memory
    std::byte* to = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t time = 0;                ///< of the sanitizers
    bool moved = false;                    ///< its thread has waited until it was read
    std::shared_ptr<const TensorBox> box;  ///< of a tensor copy or a reduction, in place of `to`
  };
  std::vector<Load> loads;
  std::uint32_t reads_under_way = 0;     ///< loads of whatever block that copy from this one's shared memory
  std::vector<Store> stores;             ///< in the order issued
  std::vector<std::uint32_t> committed;  ///< groups, by thread; empty: none
  std::vector<WarpProducts> products;    ///< by warp; empty: none

  /// The load that is still writing some of [offset, offset + bytes), or null.
  const Load* writing(std::uint64_t offset, std::uint64_t bytes) const {
    for (const Load& c : loads)
      if (offset < c.to + c.bytes && c.to < offset + bytes) return &c;
    return nullptr;
  }
};

/// Round trips of bulk loads are counted in parts: of several under way at once each is its share of one.
inline constexpr std::uint64_t kBulkTripParts = 5040;

/// What a copy of shared memory takes of it in wavefronts of 128 bytes.
constexpr std::uint64_t bulk_wavefronts(std::uint64_t bytes) { return (bytes + 127) / 128; }

/// Finds a bulk copy of [at, at + bytes) over an mbarrier.
void check_no_mbarrier(Strand& s, const Inst* i, const SharedPlace& at, std::uint32_t bytes, int warp,
                       int lane);
/// The blocks of the cluster that a mask of a lane names, or the finding that there are none.
std::uint32_t multicast_ranks(Strand& s, const Inst* i, std::uint32_t mask, int warp, int lane);
/// Queues a load whose `inst`, `warp` and `lane` are those at hand, for the block of `at` and the mbarrier at
/// `bar`.
void queue_bulk_load(Strand& s, const Inst* i, const SharedPlace& at, const SharedPlace& bar,
                     BulkCopies::Load load, int warp, int lane);
/// The group that a thread's next store is of.
std::uint32_t open_bulk_group(BlockRun& b, int warp, int lane);

/// All loads that complete this mbarrier reach shared memory.
void land_bulk_loads(Strand& s, BlockRun& owner, std::uint64_t mbarrier);
/// The load, of whatever block, that is to read some of [offset, offset + bytes) of this block's shared
/// memory, or null.
const BulkCopies::Load* bulk_load_reading(const BlockRun& block, std::uint64_t offset, std::uint64_t bytes);
/// Nothing may be under way to or from the shared memory of a block that has ended.
void check_bulk_copies_ended(BlockRun& block);

/// cp.async.bulk from global to shared memory. o: to, from, bytes, mbarrier.
const Inst* run_bulk_load(Strand& s, const Inst* i);
/// From shared memory to that of a block of the cluster; o likewise. imm: 1 + AtomicOp of a reduction, count:
/// bytes of its elements.
const Inst* run_bulk_exchange(Strand& s, const Inst* i);
/// From shared to global memory. o: to, from, bytes.
const Inst* run_bulk_store(Strand& s, const Inst* i);
const Inst* commit_bulk_stores(Strand& s, const Inst* i);
/// imm: groups that may stay open; flags 1: .read, until shared memory has been read.
const Inst* wait_for_bulk_stores(Strand& s, const Inst* i);

}  // namespace stitchwork::sim
