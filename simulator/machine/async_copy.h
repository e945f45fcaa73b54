// cp.async: copies a thread has issued and not yet waited for.
#pragma once

#include <array>
#include <vector>

#include "simulator/machine/block_run.h"

namespace stitchwork::sim {

/// Of one warp. Groups are counted by each lane for itself.
struct AsyncCopies {
  struct Copy {
    const Inst* inst = nullptr;
    std::uint32_t group = 0;
    std::uint8_t lane = 0;
    std::uint8_t read = 0;     ///< bytes, the others are zeros
    std::uint64_t to = 0;      ///< shared memory offset
    std::uint64_t number = 0;  ///< of the warp's, in the order issued
    std::array<std::byte, 16> data{};
  };
  /// An arrival at an mbarrier when the copies that its lane issued before are complete.
  struct Arrival {
    const Inst* inst = nullptr;
    std::uint8_t lane = 0;
    std::uint64_t mbarrier = 0;  ///< shared memory offset
    std::uint64_t copies = 0;    ///< of the warp's that were issued before
  };
  std::vector<Copy> pending;                  ///< in the order issued
  std::vector<Arrival> arrivals;              ///< likewise
  std::uint64_t issued = 0;                   ///< copies of the warp
  std::array<std::uint32_t, 32> committed{};  ///< groups; their numbers are only compared with each other

  /// For the next block.
  void clear() {
    pending.clear();
    arrivals.clear();
    issued = 0;
  }
};

/// Completes the copies that arrivals at this mbarrier of the strand's block wait for, and arrives.
void land_async_arrivals(Strand& s, std::uint64_t mbarrier);

/// Holds `i->count` bytes for shared memory offset `to` until the lane waits for them (async_copy.cpp).
/// `read` of the bytes are of global memory.
void queue_async_copy(Strand& s, const Inst* i, int warp, int lane, std::uint64_t to, const std::byte* data,
                      unsigned read);
/// Closes the open group of each active lane.
void commit_async_copies(Strand& s, int warp);
/// Writes what active lanes queued, but for their `open` latest groups; `all`: also what is in no group.
/// Counts at the basic block i->o[0] what was outstanding.
void finish_async_copies(Strand& s, const Inst* i, int warp, std::uint32_t open, bool all);
/// cp.async.mbarrier.arrive. o[4]: address.
const Inst* run_async_arrive(Strand& s, const Inst* i);

}  // namespace stitchwork::sim
