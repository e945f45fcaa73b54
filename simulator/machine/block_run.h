// One block as its handlers see it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/cache/l1_cache.h"
#include "simulator/cache/l2_log.h"
#include "simulator/machine/address.h"
#include "simulator/machine/counters.h"
#include "simulator/machine/strand.h"

namespace stitchwork::sim {

struct AsyncCopies;
struct BulkCopies;
struct Mbarriers;
class BlockChecks;
struct LaunchContext;
struct ClusterRun;
class UpdateTally;

/// [lo, hi) of the allocation a memory instruction touched last, and the host bytes behind it.
struct AddressCache {
  std::uint64_t lo = ~std::uint64_t{0}, hi = ~std::uint64_t{0};
  std::byte* host = nullptr;
};

struct BarrierSlot {
  std::uint64_t arrived_only = 0;                 ///< threads of bar.arrive
  std::uint32_t count_true = 0, count_all = 0;    ///< bar.red accumulation
  std::uint32_t result_true = 0, result_all = 0;  ///< of the last completed phase
};

/// One block being executed; what its handlers need of the launch.
struct BlockRun {
  const Inst* const* block_start = nullptr;  ///< basic block -> its enter instruction
  BasicBlockCount* bb_counts = nullptr;
  HotCounters* hot = nullptr;
  AddressCache* caches = nullptr;  ///< by Inst::id
  AccessLog* logs = nullptr;       ///< by L2 partition
  UpdateTally* updates = nullptr;  ///< of atomics on global memory
  std::uint32_t partitions = 1;
  L1Share l1;
  const LaunchContext* launch = nullptr;
  std::byte* shared = nullptr;
  std::uint64_t shared_base = 0;  ///< address of its first byte in the window
  std::uint64_t shared_bytes = 0;
  std::byte* local = nullptr;  ///< [thread][local_bytes]
  std::uint64_t local_bytes = 0;
  std::uint64_t local_line = 0;  ///< where the block's local memory begins for the caches
  std::byte* params = nullptr;
  std::uint64_t param_bytes = 0;
  std::int64_t budget = 0;     ///< warp instructions left before a livelock is reported
  std::uint64_t progress = 0;  ///< memory words changed, barriers passed
  std::uint64_t clock = 0;
  std::uint32_t threads = 0;  ///< in the block
  std::uint64_t alive_threads = 0;
  bool communicates = false;
  BlockChecks* checks = nullptr;  ///< of the sanitizers asked for, or null
  AsyncCopies* async = nullptr;   ///< by warp of the block
  bool has_mbarriers = false;     ///< some were initialised; bulk loads need one, too
  Mbarriers* mbarriers = nullptr;
  BulkCopies* bulk = nullptr;
  ClusterRun* cluster = nullptr;  ///< cluster.h; null: neither kernel nor launch knows of clusters
  std::uint32_t cluster_rank = 0;
  std::uint64_t index = 0;  ///< linear block index
  BarrierSlot barriers[16];
};

}  // namespace stitchwork::sim
