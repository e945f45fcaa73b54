// One resident block: its register files, strands, barriers; and what a whole launch shares.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "occupancy_model/timing.h"
#include "simulator/cache/update_tally.h"
#include "simulator/machine/async_copy.h"
#include "simulator/machine/bulk_copy.h"
#include "simulator/machine/checks.h"
#include "simulator/machine/device_memory.h"
#include "simulator/machine/findings.h"
#include "simulator/machine/mbarrier.h"
#include "simulator/machine/program.h"
#include "simulator/machine/register_pool.h"

namespace stitchwork::sim {

/// Of shared memory, for system software: 1 KB a block from compute capability 8.0 on (CUDA C++ Programming
/// Guide, "Compute Capabilities"). Cooperative groups keep their scratch memory from its middle on.
inline constexpr std::uint32_t kReservedSharedBytes = 1024;

/// Constant during a launch.
struct LaunchContext {
  const ptx::ModuleImpl* module = nullptr;
  const ptx::Program* program = nullptr;
  const Launch* launch = nullptr;
  const Device* device = nullptr;
  DeviceMemory* memory = nullptr;
  std::vector<const Inst*> block_start;
  std::vector<std::byte> parameters;
  std::vector<std::uint64_t> variable_addresses;  ///< by module variable, 0 where unused
  LaunchChecks* checks = nullptr;                 ///< null: none asked for
  std::string* printed = nullptr;                 ///< by the kernel's printf
  DeviceAddress grid_workspace = 0;               ///< of cooperative groups, if the kernel asks for it
  std::uint64_t shared_bytes = 0;
  /// Behind these, where the kernel asks for the part that system software has (%reserved_smem_offset_begin).
  std::uint64_t reserved_shared_offset = 0;
  std::uint64_t reachable_shared_bytes = 0;  ///< with that part
  Dim3 cluster;                              ///< 1, 1, 1: none
  bool explicit_cluster = false;
  std::int64_t l1_bytes = 0;  ///< a block's share (l1_cache.h)
  std::uint64_t resident_blocks = 1;
  std::uint64_t max_warp_instructions = 0;
  const std::function<void(const Progress&)>* progress = nullptr;
  bool warm_l2 = false;  ///< what is in L2 is of earlier launches
  bool lines = false;    ///< what each instruction does to memory is counted apart
};

/// The code that blocks run.
void use_program(LaunchContext& context, const ptx::Program& program);

/// Ends a launch; caught by run().
struct FindingError {
  Finding finding;
  std::uint64_t block_index = 0;
};

/// What an instruction did to memory: the counters of that name, of its executions alone.
struct MemoryCounts {
  std::uint64_t gld_transactions = 0, gst_transactions = 0, atomic_sectors = 0;
  std::uint64_t shared_wavefronts = 0, shared_conflicts = 0;
  /// += times * other; all wraps.
  void add(const MemoryCounts& other, std::uint64_t times = 1);
};
void add(std::vector<MemoryCounts>& a, const std::vector<MemoryCounts>& b, std::uint64_t times = 1);
MemoryCounts memory_counts(const HotCounters& hot);

/// What one host thread counts and caches.
struct Worker {
  explicit Worker(const LaunchContext& context);
  std::vector<BasicBlockCount> bb_counts;
  std::vector<AddressCache> caches;
  HotCounters hot;
  std::vector<MemoryCounts> memory;  ///< by Inst::id, where asked for; else empty
  UpdateTally updates;
};
/// a += times * b; times may be negative: all wraps.
void add(HotCounters& a, const HotCounters& b, std::uint64_t times = 1);

class Block : public BlockRun {
 public:
  /// The block of that rank in its cluster.
  Block(const LaunchContext& context, std::uint32_t rank);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Prepares the block at `position` of the grid in the order of clusters.
  void start(std::uint64_t position);
  /// Counts into this worker, and logs accesses by L2 partition, from now on.
  void attach(Worker& worker, std::vector<AccessLog>& access_logs);

  enum class Progress { kFinished, kWaiting };
  /// Runs until every strand is done, or all that are left have polled once without a barrier to release.
  Progress step();
  /// Runs a block of a kernel whose blocks do not wait for each other to its end.
  void run();

  /// What the block did since the last call, which now counts as its worker's.
  ThreadWork take_work();
  /// All that the block did.
  ThreadWork total_work();
  /// A polling loop begins: what came before is a phase of its own.
  void begin_waiting();

  /// Nothing changed for a while: parts threads that wait for each other and run as one, so that others of
  /// them can proceed. `all_progress`: of all blocks that may wait for each other. False where none are left.
  bool part(std::uint64_t all_progress) { return split_all() || turn_lanes(all_progress); }
  /// Where the first unfinished strand waits.
  [[noreturn]] void raise_waiting(FindingKind kind, std::string message);
  /// Where a strand waits for an mbarrier that nobody completes, a finding that says so.
  void report_mbarrier_wait();

  /// True if all active lanes of the strand may leave the cluster barrier.
  bool may_pass_cluster_barrier(const Strand& s);

  /// Lanes `here` of the strand's only warp come to instruction `i`, which wants those that it `named`; the
  /// others come later, or have come before. Returns where the strand goes on, `i` if all are here.
  const Inst* rendezvous(Strand& s, const Inst* i, std::uint32_t here, std::uint32_t named, Rendezvous kind);

  std::vector<Strand> strands;
  /// By warp: lanes that have arrived at the open cluster barrier; that have yet to leave the complete one.
  std::vector<std::uint32_t> cluster_arrived, cluster_passing;
  std::vector<ThreadWork> waits;  ///< what the block did before it waited for the first time, the second ...

 private:
  std::optional<std::uint32_t> special_of_thread(ptx::Special which, std::uint32_t t) const;
  std::uint32_t special_of_launch(ptx::Special which) const;
  /// To the next instruction that is not the strand's to execute now.
  void execute(Strand& s);
  /// The same, and what each instruction does to memory is its own.
  void execute_by_line(Strand& s);
  void fill_slots();
  void fill_block_slots();
  Strand& add_strand(int gang, int first_warp, int last_warp);
  bool release_barriers();
  /// Splits strands that hold several warps.
  bool split_all();
  bool turn_lanes(std::uint64_t all_progress);
  std::optional<const Inst*> complete_rendezvous(Strand& s, bool ended);
  void note_log_ends();

  friend void split_strand(Strand& s, const Inst* i);
  friend const Inst* resume_waiting(Strand& s);
  friend bool arrive_at_barrier(Strand& s, const Inst* i, int id, std::uint32_t threads, bool blocks);

  const LaunchContext& context_;
  int gangs_ = 0;
  Worker* worker_ = nullptr;
  std::vector<BasicBlockCount> counts_;
  HotCounters hot_;
  MemoryCounts taken_;  ///< of what take_work took, where lines are asked for
  RegisterFile registers_;
  std::vector<std::byte> shared_storage_, local_storage_;
  std::vector<std::uint64_t> l1_lines_;
  std::vector<std::vector<std::size_t>>
      log_ends_;  ///< by partition: where each strand's part of this turn ends
  std::unique_ptr<StackEntry[]> stacks_;
  std::unique_ptr<BlockChecks> checks_;
  std::vector<AsyncCopies> async_;
  std::vector<std::vector<WaitingLanes>> waiting_;  ///< by warp
  Mbarriers mbarriers_;
  BulkCopies bulk_;
  std::uint64_t turned_at_ = 0;  ///< progress when lanes last had turns, and
  int turns_ = 0;                ///< how many since then
};

/// "block (1,0,0), thread (3,0,0)" coordinates of a lane.
Dim3 block_coordinates(const LaunchContext& context, std::uint64_t linear);
/// "file:line" of the CUDA source an instruction comes from, or empty.
std::string cuda_location(const LaunchContext& context, std::uint32_t inst);
/// The PTX file that an instruction is of: a kernel may have called functions of other modules.
const std::string& ptx_file(const LaunchContext& context, std::uint32_t inst);
Finding make_finding(const BlockRun& block, const Strand& s, const Inst* i, FindingKind kind,
                     std::string message, int warp, int lane);

}  // namespace stitchwork::sim
