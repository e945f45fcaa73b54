// What the interpreter's handlers see: decoded instructions and the strands they run on.
//
// A block's warps run in *gangs* of up to kGangWarps warps. A gang has one register file laid out
// [slot][warp][lane]; a *strand* is a run of warps of one gang that move together (the whole gang, or one
// warp once the warps of a gang have to wait for each other). A handler executes one instruction for all
// warps of a strand and returns the next instruction, or null when the strand stops (waits, yields,
// finishes).
#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/simulator.h"

namespace stitchwork::sim {

inline constexpr int kGangWarps = 8;
inline constexpr std::uint32_t kSlot32Bytes = kGangWarps * 32 * 4;
inline constexpr std::uint32_t kSlot64Bytes = kGangWarps * 32 * 8;
inline constexpr std::uint32_t kSlotPredBytes = kGangWarps * 4;

/// Address map of the simulated device: bits 40 and up name the allocation, so that finding it is a shift and
/// an overrun of less than a terabyte cannot land in a neighbour. 0 is never mapped.
inline constexpr int kAllocationShift = 40;
/// The offset within its allocation that an address has.
inline constexpr std::uint64_t kAllocationOffsetMask = (std::uint64_t{1} << kAllocationShift) - 1;
/// In the allocation or window that a generic address names.
constexpr std::uint64_t offset_of(std::uint64_t address) { return address & kAllocationOffsetMask; }
inline constexpr std::uint64_t kSharedWindow = 1;
inline constexpr std::uint64_t kLocalWindow = 2;
inline constexpr std::uint64_t kParamWindow = 3;
/// Inst::flags of isspacep.const, beside windows.
inline constexpr std::uint8_t kConstantWanted = 4;
inline constexpr std::uint64_t kFirstAllocation = 16;
/// Bits of a shared memory address from here on are the rank of its block in the cluster (cluster.h).
inline constexpr int kClusterRankShift = 24;
/// Bits of a line's number (address / 128) from here on name the window or allocation.
inline constexpr int kLineOfWindowShift = kAllocationShift - 7;

/// The unit of an SM that an instruction runs on.
enum class Pipe : std::uint8_t {
  kOther,  ///< none of these: control flow, memory, copies
  kFp32,
  kMufu,  ///< approximate special functions
  kFp64,
  kHalf2,  ///< arithmetic of two packed f16 or bf16, or of one
  kInt32,
};
inline constexpr int kPipes = 6;

struct Strand;
struct Inst;
using Handler = const Inst* (*)(Strand&, const Inst*);

/// One decoded instruction. Operands are byte offsets into the gang's register file.
struct Inst {
  Handler fn[2];       ///< [0]: every lane of the strand active, [1]: masked
  std::uint32_t o[6];  ///< destination(s) first, then sources
  std::int64_t imm;    ///< address offset, branch target (basic block), barrier id ...
  std::uint32_t id;    ///< index of the source instruction (line tables, address caches)
  std::uint8_t count;  ///< vector elements of a memory access
  std::uint8_t flags;  ///< handler specific
  std::uint16_t aux;   ///< handler specific
};

/// One level of the divergence stack: lanes `mask` continue at basic block `pc` until they reach `rpc`.
struct StackEntry {
  std::int32_t pc;
  std::int32_t rpc;  ///< -1: only at exit
  const Inst* at;    ///< where they continue, within a basic block; null: at the beginning of `pc`
  std::uint32_t mask[kGangWarps];
};

enum class StrandState : std::uint8_t { kRunnable, kBarrier, kClusterBarrier, kYielded, kDone };

/// What lanes of a warp come together for.
enum class Rendezvous : std::uint8_t {
  kBlockBarrier,
  kClusterBarrier,
  kWarpBarrier,
  kShuffle,
  kVote,
  kMatch,
  kRedux,
  kElect,
  kWholeWarp,  ///< matrix instructions
};
/// Lanes that wait for others of their warp.
struct WaitingLanes {
  const Inst* at = nullptr;  ///< which they execute then
  Rendezvous kind = Rendezvous::kBlockBarrier;
  std::uint32_t lanes = 0;
  std::uint32_t named = 0;   ///< that are to come
  std::uint32_t wanted = 0;  ///< of these, those that ran when the first came
};
/// Inst::flags of @barrier.
inline constexpr std::uint8_t kBarrierArrives = 1, kBarrierNegated = 2, kBarrierAligned = 4;

/// [lo, hi) of the allocation a memory instruction touched last, and the host bytes behind it.
struct AddressCache {
  std::uint64_t lo = ~std::uint64_t{0}, hi = ~std::uint64_t{0};
  std::byte* host = nullptr;
};

/// Entries: line number (address / 128) << 5 | sector mask << 1 | write.
struct AccessLog {
  std::uint64_t* begin = nullptr;
  std::uint64_t* end = nullptr;
  std::uint64_t* capacity = nullptr;
};

/// What L1 holds for one block (l1_cache.h): sets of kWays lines, latest first; line number << kLineShift |
/// dirty sectors << kDirtyShift | sectors. Only local memory is dirty.
struct L1Share {
  static constexpr std::uint32_t kWays = 4;
  static constexpr int kDirtyShift = 4, kLineShift = 8;
  static constexpr std::uint64_t kSectors = 15, kDirty = kSectors << kDirtyShift;
  std::uint64_t* lines = nullptr;
  std::uint32_t sets = 0;          ///< 0: no L1
  bool only_non_coherent = false;  ///< other loads go past it
};

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

struct BlockRun;
struct AsyncCopies;
struct BulkCopies;
struct Mbarriers;
class BlockChecks;
struct LaunchContext;
struct ClusterRun;
class UpdateTally;

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

/// Where a strand's warps accessed shared memory through one 32-bit register, whose later uses in the basic
/// block differ by a constant alone: neither the shapes of the warps' addresses nor their bank conflicts
/// change then.
struct AccessMemo {
  bool known = false;                    ///< every lane was active and both halves of each warp are even
  bool is_run[kGangWarps][2] = {};       ///< of the halves: a run of neighbours, else one address
  std::uint32_t at[kGangWarps][2] = {};  ///< their first addresses
  std::uint32_t offset = 0;              ///< added to the register in these
  std::uint64_t low = 0, high = 0;       ///< all addresses lie in [low, high)
  std::uint32_t wavefronts = 0;          ///< of all warps, and
  std::uint32_t conflicts = 0;           ///< of these those that conflicts are
};
/// Inst::flags of an access to shared memory, or 0: it finds out what a memo keeps, or uses that.
inline constexpr int kMemos = 4;
inline constexpr std::uint8_t kMemoLeads = 4, kMemoFollows = 8;  ///< | number of the memo

/// State shared by the strands of one block that handlers touch.
struct Strand {
  std::byte* regs = nullptr;
  std::uint32_t mask[kGangWarps] = {};         ///< active lanes now
  std::int32_t first_warp = 0, last_warp = 0;  ///< [first, last) within the gang
  std::int32_t active_warps = 0, active_threads = 0;
  bool masked = false;             ///< some lane of the strand is inactive
  const Inst* poll = nullptr;      ///< that polled last, since the last barrier, and
  std::uint64_t poll_address = 0;  ///< where its first lane did
  std::uint64_t awaited = 0;       ///< offset + 1 of the mbarrier it last waited for in vain; 0: none
  StrandState state = StrandState::kRunnable;
  std::int32_t depth = 0;  ///< stack[depth - 1] is the running entry
  std::int32_t gang = 0;
  std::int32_t barrier_id = 0;
  std::uint32_t barrier_threads = 0;
  std::uint32_t barrier_line_id = 0;
  const Inst* resume = nullptr;
  /// Lanes of the strand's only warp that wait for others (rendezvous.cpp); they are in no entry of the
  /// stack.
  std::uint32_t waiting = 0;
  std::uint32_t alive[kGangWarps] = {};
  std::uint32_t saved[kGangWarps] = {};  ///< mask set aside by a guard
  StackEntry* stack = nullptr;           ///< kMaxDepth entries
  BlockRun* block = nullptr;
  AccessMemo memos[kMemos];
};

inline constexpr int kMaxDepth = 64;

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

// Slow paths, outside the vector code.

/// A load or atomic that may wait for others has run: lets them run. One that looks at the same place again
/// waits.
const Inst* yield_after_poll(Strand& s, const Inst* i, std::uint64_t address);

/// Inst::flags of cluster barriers.
inline constexpr std::uint8_t kClusterAligned = 1, kClusterRelaxed = 2;
/// The active lanes arrive at the barrier of the cluster.
void arrive_at_cluster_barrier(Strand& s, const Inst* i);
/// True if the strand may go on; else it waits, and runs the instruction again.
bool wait_at_cluster_barrier(Strand& s, const Inst* i);
/// Loads or stores of `element_bytes` each, of shared memory of any block of the cluster. `addresses`: in the
/// window of shared memory, of 32 lanes.
void access_cluster(Strand& s, const Inst* i, int warp, std::uint32_t mask, const std::uint64_t* addresses,
                    unsigned element_bytes, bool is_store);
/// The byte of shared memory that a lane's access of `bytes` begins with, in the block that the address
/// names; or the finding that there is none.
std::byte* cluster_byte(Strand& s, const Inst* i, std::uint64_t address, unsigned bytes, bool write, int warp,
                        int lane);
/// Counts what these lanes access of other blocks' shared memory; returns those that access their own
/// block's.
std::uint32_t count_remote(BlockRun& b, std::uint32_t mask, const std::uint64_t* addresses);

/// Holds `i->count` bytes for shared memory offset `to` until the lane waits for them (async_copy.cpp).
/// `read` of the bytes are of global memory.
void queue_async_copy(Strand& s, const Inst* i, int warp, int lane, std::uint64_t to, const std::byte* data,
                      unsigned read);
/// Closes the open group of each active lane.
void commit_async_copies(Strand& s, int warp);
/// Writes what active lanes queued, but for their `open` latest groups; `all`: also what is in no group.
/// Counts at the basic block i->o[0] what was outstanding.
void finish_async_copies(Strand& s, const Inst* i, int warp, std::uint32_t open, bool all);

/// Inst::flags of operations on mbarriers (mbarrier.h).
enum class MbarrierOp : std::uint8_t {
  kInit,
  kInval,
  kArrive,
  kArriveDrop,
  kExpectTx,
  kCompleteTx,
  kWait,  ///< test_wait, try_wait
};
/// Inst::aux of them, beside kAddress32.
enum MbarrierBits : std::uint16_t {
  kMbarrierGeneric = 2,  ///< a generic address
  kMbarrierRemote = 4,   ///< may be of another block of the cluster
  kMbarrierRelaxed = 8,
  kMbarrierNoComplete = 16,
  kMbarrierExpects = 64,       ///< arrive.expect_tx
  kMbarrierParity = 128,       ///< waits for a parity, not with a state
  kMbarrierNoIncrement = 256,  ///< cp.async.mbarrier.arrive.noinc
};
/// o: d or ~0, count, bytes, state or parity or ~0; o[4]: address.
const Inst* run_mbarrier(Strand& s, const Inst* i);
/// cp.async.mbarrier.arrive. o[4]: address.
const Inst* run_async_arrive(Strand& s, const Inst* i);
/// o: d, state.
const Inst* run_pending_count(Strand& s, const Inst* i);

/// Inst::flags of bulk copies (bulk_copy.h).
inline constexpr std::uint8_t kBulkRemote = 1;  ///< .shared::cluster
/// Inst::aux of @redux.
inline constexpr std::uint16_t kReduxSigned = 1, kReduxFloat = 2, kReduxAbs = 4, kReduxNan = 8;
/// Inst::aux: the address of shared memory, or of the mbarrier, has 32 bits.
inline constexpr std::uint16_t kBulkNarrowShared = 1, kBulkNarrowMbarrier = 2;
/// cp.async.bulk from global to shared memory. o: to, from, bytes, mbarrier.
const Inst* run_bulk_load(Strand& s, const Inst* i);
/// The other way. o: to, from, bytes.
const Inst* run_bulk_store(Strand& s, const Inst* i);
const Inst* commit_bulk_stores(Strand& s, const Inst* i);
/// imm: groups that may stay open; flags 1: .read, until shared memory has been read.
const Inst* wait_for_bulk_stores(Strand& s, const Inst* i);
[[noreturn]] void raise_assertion(Strand& s, const Inst* i, std::uint64_t message, std::uint64_t file,
                                  std::uint32_t line, int warp, int lane);
/// vprintf of one lane into the launch's text; returns the number of values printed.
std::uint32_t print_formatted(Strand& s, const Inst* i, std::uint64_t format, std::uint64_t values, int warp,
                              int lane);

/// Whether a generic address is of a .const variable.
bool is_constant_memory(const Strand& s, std::uint64_t address);
/// The allocation that holds [address, address + bytes), or the finding that there is none (thrown).
void find_allocation(Strand& s, const Inst* i, AddressCache& cache, std::uint64_t address, unsigned bytes,
                     bool write, int warp, int lane);
[[noreturn]] void raise_misaligned(Strand& s, const Inst* i, std::uint64_t address, unsigned bytes, int warp,
                                   int lane);
[[noreturn]] void raise_window(Strand& s, const Inst* i, const char* space, std::uint64_t address,
                               unsigned bytes, std::uint64_t size, bool write, int warp, int lane);
[[noreturn]] void raise_finding(Strand& s, const Inst* i, FindingKind kind, const char* what, int warp,
                                int lane);
void grow_log(AccessLog& log);
/// Makes one strand per warp of `s`'s gang; `s` itself keeps its first warp.
void split_strand(Strand& s, const Inst* i);
/// Not all running lanes of a warp of the strand are at instruction `i`, which they execute together: those
/// that are here wait for the others, whichever way these come. Returns `i` once all are here, as one; else
/// where the strand goes on.
const Inst* await_warp(Strand& s, const Inst* i, Rendezvous kind);
/// The same for an instruction that is for lanes named by a mask (`members`: operand offset of a register).
/// Lanes that name different masks wait for themselves.
const Inst* await_members(Strand& s, const Inst* i, std::uint32_t members, Rendezvous kind);
/// Nothing of the strand runs, but some of its lanes wait: where they go on, as others have ended.
const Inst* resume_waiting(Strand& s);
/// Lanes of a warp take more different ways than the simulator keeps: an Error, as the program may be right.
[[noreturn]] void raise_depth(const Strand& s, const Inst* i);
/// Lanes wait for others that will not come.
[[noreturn]] void raise_divergence(Strand& s, const WaitingLanes& waiting, const char* what,
                                   const char* where);
/// True if the barrier completed with this arrival and the strand may go on at once.
bool arrive_at_barrier(Strand& s, const Inst* i, int id, std::uint32_t threads, bool blocks);

}  // namespace stitchwork::sim
