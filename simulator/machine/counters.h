// What handlers count.
#pragma once

#include <cstdint>

#include "simulator/machine/inst.h"

namespace stitchwork::sim {

/// Counters a handler adds to; one per host thread, padded so that threads do not share cache lines.
struct alignas(128) HotCounters {
  std::uint64_t gld_requests = 0, gst_requests = 0, gld_transactions = 0, gst_transactions = 0;
  std::uint64_t gld_bytes = 0, gst_bytes = 0;
  std::uint64_t l1_hit_sectors = 0;
  std::uint64_t shared_loads = 0, shared_stores = 0, shared_conflicts = 0;
  std::uint64_t shared_wavefronts = 0;  ///< of loads, stores and atomics; those of bulk copies apart
  std::uint64_t l1_wavefronts = 0;      ///< of loads, stores and atomics of global and local memory
  std::uint64_t local_loads = 0, local_stores = 0, local_load_sectors = 0, local_store_sectors = 0;
  std::uint64_t local_l2_sectors = 0;  ///< of local memory, between L1 and L2
  std::uint64_t atomics = 0, accesses = 0, block_barriers = 0;
  std::uint64_t atomic_sectors = 0;    ///< of global memory, distinct ones of each request
  std::uint64_t atomic_conflicts = 0;  ///< of these, further updates as lanes have one word
  std::uint64_t atomic_results = 0;    ///< warp-level: atomics on global memory that give back what was there
  std::uint64_t guarded[kPipes] = {};  ///< lanes of guarded instructions, by Pipe
  std::uint64_t cluster_barriers = 0, remote_requests = 0, remote_sectors = 0;
  std::uint64_t bulk_copies = 0, bulk_loads = 0, bulk_sectors = 0;
  std::uint64_t bulk_shared_loads = 0, bulk_shared_stores = 0;  ///< of 128 bytes each
  /// Phases of mbarriers that bulk loads completed, the bytes that were under way when each was waited for,
  /// and round trips (in kBulkTripParts) that nothing else under way hides.
  std::uint64_t bulk_waits = 0, bulk_bytes_in_flight = 0, bulk_trips = 0;
  std::uint64_t async_copies = 0;  ///< warp-level; each is of shared_stores, too
};

struct BasicBlockCount {
  std::uint64_t warps = 0, threads = 0;
  /// Of warps that waited here for asynchronous copies: how often, bytes asked for that they had not waited
  /// for yet, and the copies (of a lane each) that they had behind it.
  std::uint64_t waits = 0, outstanding = 0, ended = 0;

  BasicBlockCount& add(const BasicBlockCount& b, std::uint64_t times = 1) {
    warps += times * b.warps;
    threads += times * b.threads;
    waits += times * b.waits;
    outstanding += times * b.outstanding;
    ended += times * b.ended;
    return *this;
  }
};

}  // namespace stitchwork::sim
