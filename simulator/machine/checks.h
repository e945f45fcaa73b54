// What looks on while blocks run: the sanitizers (check/) are told here of what no instruction of theirs
// sees. Offsets are in the block's shared memory, warps those of the strand's gang.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "simulator/machine/atomics.h"
#include "simulator/machine/bulk_copy.h"

namespace stitchwork::sim {

/// Of one block. What is wrong is thrown as a FindingError.
class BlockChecks {
 public:
  virtual ~BlockChecks() = default;
  /// For the block's next index.
  virtual void start() = 0;
  /// Its last thread has ended: what others of the cluster did with its shared memory has to be before that.
  virtual void end_of_block() = 0;

  virtual void barrier_arrive(const Strand& s, int id) = 0;
  /// All have come: those that wait and `last`, and threads that have ended.
  virtual void barrier_complete(const std::vector<Strand>& strands, int id, const Strand* last) = 0;
  virtual void warp_barrier(const Strand& s) = 0;
  /// Threads arrive at the barrier of the cluster, or leave it.
  virtual void cluster_arrive(const Strand& s, bool relaxed) = 0;
  virtual void cluster_wait(const Strand& s) = 0;
  /// Told to every block: all threads have arrived.
  virtual void cluster_complete() = 0;

  virtual void mbarrier_init(const Strand& s, int warp, std::uint64_t offset) = 0;
  virtual void mbarrier_inval(std::uint64_t offset) = 0;
  /// Of one in `owner`'s shared memory: its initialisation has to be ordered before.
  virtual void mbarrier_use(Strand& s, const Inst* i, int warp, int lane, BlockChecks& owner,
                            std::uint64_t offset) = 0;
  virtual void mbarrier_arrive(const Strand& s, int warp, BlockChecks& owner, std::uint64_t offset,
                               SyncOrder order) = 0;
  /// Its phase is complete.
  virtual void mbarrier_complete(std::uint64_t offset) = 0;
  virtual void mbarrier_wait(const Strand& s, int warp, std::uint64_t offset, SyncOrder order) = 0;

  /// A cp.async is issued that will write shared memory from `to` on: others must be ordered before, and may
  /// not touch it until it has been waited for.
  virtual void async_issued(Strand& s, const Inst* i, int warp, int lane, std::uint64_t to) = 0;
  /// A cp.async that `lane` has waited for is about to reach shared memory offset `to`.
  virtual void async_write(Strand& s, const Inst* i, int warp, int lane, std::uint64_t to) = 0;
  /// A bulk load is issued that reads these, for the shared memory of `owner`.
  virtual void bulk_load_source(Strand& s, const Inst* i, int warp, int lane, BlockChecks& owner,
                                std::span<const GlobalRange> from) = 0;
  /// A bulk copy is issued that reads the block's own shared memory, for that of a block of the cluster.
  virtual void bulk_exchange_source(Strand& s, const Inst* i, int warp, int lane, std::uint64_t from,
                                    std::uint32_t bytes) = 0;
  /// It, or an asynchronous store, will write the shared memory of `owner`.
  virtual void bulk_load_target(Strand& s, const Inst* i, int warp, int lane, BlockChecks& owner,
                                const BulkCopies::Load& copy) = 0;
  /// It has written this block's shared memory.
  virtual void bulk_landed(const BulkCopies::Load& copy) = 0;
  /// A bulk store is issued, of `bytes` from `from` on to these; returns its time. One that reduces makes no
  /// race with other atomics.
  virtual std::uint32_t bulk_store(Strand& s, const Inst* i, int warp, int lane, std::uint64_t from,
                                   std::uint32_t bytes, std::span<const GlobalRange> to) = 0;
  /// Its thread has waited until it has read, or else written.
  virtual void bulk_store_waited(const BulkCopies::Store& copy, bool read) = 0;
  /// The 128 bytes of a tensor map in global memory are written.
  virtual void tensor_map_written(std::uint64_t address) = 0;
  /// A wgmma reads these chunks of 16 bytes of the block's shared memory.
  virtual void product_reads(Strand& s, const Inst* i, int warp, std::vector<std::uint64_t>& chunks,
                             WarpProducts& products) = 0;
  /// A warp of the block has waited for the first `completed` products.
  virtual void products_waited(int warp, std::uint32_t completed) = 0;
};

/// Of one launch.
class LaunchChecks {
 public:
  virtual ~LaunchChecks() = default;
  /// For a block that begins.
  virtual std::unique_ptr<BlockChecks> of_block(const BlockRun& block) = 0;
};

}  // namespace stitchwork::sim
