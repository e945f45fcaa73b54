// Warps that move together, and how they wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/machine/inst.h"

namespace stitchwork::sim {

struct BlockRun;

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

/// Where a strand's warps accessed shared memory through one 32-bit register, whose later uses in the basic
/// block differ by a constant alone: neither the shapes of the warps' addresses nor their bank conflicts
/// change then.
struct AccessMemo {
  bool known = false;                     ///< every lane was active and both halves of each warp are even
  bool is_run[2 * kGangWarps] = {};       ///< of the halves: a run of neighbours, else one address
  std::uint32_t at[2 * kGangWarps] = {};  ///< their first addresses
  std::uint32_t offset = 0;               ///< added to the register in these
  std::uint64_t low = 0, high = 0;        ///< all addresses lie in [low, high)
  std::uint32_t wavefronts = 0;           ///< of all warps, and
  std::uint32_t conflicts = 0;            ///< of these those that conflicts are
};

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

/// A load or atomic that may wait for others has run: lets them run. One that looks at the same place again
/// waits.
const Inst* yield_after_poll(Strand& s, const Inst* i, std::uint64_t address);

/// The active lanes arrive at the barrier of the cluster.
void arrive_at_cluster_barrier(Strand& s, const Inst* i);
/// True if the strand may go on; else it waits, and runs the instruction again.
bool wait_at_cluster_barrier(Strand& s, const Inst* i);
/// Whether all running lanes of the warp have arrived there, and not yet left it.
bool warp_is_at_cluster_barrier(const Strand& s, int warp);

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
/// True if the barrier completed with this arrival and the strand may go on at once.
bool arrive_at_barrier(Strand& s, const Inst* i, int id, std::uint32_t threads, bool blocks);

}  // namespace stitchwork::sim
