// Lanes of a warp that came to an instruction by different paths and execute it together: barriers, and what
// names lanes by a mask. From sm_70 on lanes run independently (CUDA C++ Programming Guide, "Independent
// Thread Scheduling"): those that are there wait for the others, whichever way these come.
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "simulator/machine/block.h"

namespace stitchwork::sim {
namespace {

std::string_view name_of(Rendezvous kind) {
  switch (kind) {
    case Rendezvous::kBlockBarrier:
      return "block barrier";
    case Rendezvous::kClusterBarrier:
      return "cluster barrier";
    case Rendezvous::kWarpBarrier:
      return "warp barrier";
    case Rendezvous::kShuffle:
      return "shuffle";
    case Rendezvous::kVote:
      return "vote";
    case Rendezvous::kMatch:
      return "match";
    case Rendezvous::kRedux:
      return "redux";
    case Rendezvous::kElect:
      return "elect";
    case Rendezvous::kWholeWarp:
      break;
  }
  return "whole-warp instruction";
}

/// What ends the guard of an instruction, or null: lanes that the guard holds back join the others there.
const Inst* end_of_guard(const ptx::Program& program, const Inst* i) {
  while (program.flow[i->id] == ptx::Flow::kOn) ++i;
  return program.flow[i->id] == ptx::Flow::kUnguard ? i : nullptr;
}

/// The basic block of an instruction.
std::int32_t basic_block(const ptx::Program& program, const Inst* i) {
  while (program.flow[i->id] != ptx::Flow::kEnter) --i;
  return static_cast<std::int32_t>(i->imm);
}

/// Takes up what is on top of the strand's stack.
const Inst* from_stack(const ptx::Program& program) {
  return &program.code[static_cast<std::size_t>(program.resume_inst)];
}

void run_lanes(Strand& s, std::uint32_t lanes) {
  const int w = s.first_warp;
  s.mask[w] = s.saved[w] = lanes;
  s.active_warps = lanes != 0;
  s.active_threads = std::popcount(lanes);
  s.masked = lanes != ~0u;
}

void push(Strand& s, const Inst* i, StackEntry entry, std::uint32_t lanes) {
  if (s.depth + 1 > kMaxDepth) raise_depth(s, i);
  entry.mask[s.first_warp] = lanes;
  s.stack[s.depth++] = entry;
}

void leave_stack(Strand& s, std::uint32_t lanes) {
  const int w = s.first_warp;
  for (int d = 0; d < s.depth; ++d) s.stack[d].mask[w] &= ~lanes;
  s.saved[w] &= ~lanes;
  s.mask[w] &= ~lanes;
}

[[noreturn]] void raise_missing(Strand& s, const WaitingLanes& waiting, const char* where) {
  raise_divergence(s, waiting, std::string(name_of(waiting.kind)).c_str(), where);
}

/// Lanes that wait at a barrier of the block, wherever in the program that is.
bool is_unaligned_barrier(const WaitingLanes& waiting) {
  return waiting.kind == Rendezvous::kBlockBarrier && !(waiting.at->flags & kBarrierAligned);
}
/// Lanes that wait at the cluster's, likewise.
bool is_cluster_wait(const WaitingLanes& waiting) {
  return waiting.kind == Rendezvous::kClusterBarrier && !(waiting.at->flags & kClusterAligned);
}
/// Such lanes may meet lanes that wait at another instruction like theirs.
bool meets_elsewhere(const WaitingLanes& waiting) {
  return waiting.kind == Rendezvous::kWarpBarrier || is_unaligned_barrier(waiting) ||
         is_cluster_wait(waiting);
}
/// Lanes that have ended need not come.
bool forgets_ended(const WaitingLanes& waiting) {
  return waiting.kind != Rendezvous::kClusterBarrier && waiting.kind != Rendezvous::kWholeWarp &&
         (waiting.kind != Rendezvous::kBlockBarrier || is_unaligned_barrier(waiting));
}

std::uint32_t first_value(const Strand& s, std::uint32_t operand, std::uint32_t lanes) {
  std::uint32_t v = 0;
  std::memcpy(&v, s.regs + operand + (s.first_warp * 32 + std::countr_zero(lanes)) * 4, sizeof v);
  return v;
}

/// All lanes of the warp are at barriers of the block, at several places: the warp arrives, and each of them
/// goes on from its own, at once where they only arrive.
const Inst* arrive_from_places(Strand& s, const std::vector<WaitingLanes>& places, const Inst* from_stack) {
  BlockRun& b = *s.block;
  const auto of = [&](const WaitingLanes& p) {
    return std::pair{first_value(s, p.at->o[0], p.lanes) & 15,
                     p.at->o[1] == ~0u ? 0 : first_value(s, p.at->o[1], p.lanes)};
  };
  const auto [id, threads] = of(places[0]);
  const int arrives = places[0].at->flags & kBarrierArrives;
  for (const WaitingLanes& p : places) {
    if (of(p) != std::pair{id, threads} || (p.at->flags & kBarrierArrives) != arrives)
      raise_missing(s, places[0], "is at another barrier");
  }
  for (const WaitingLanes& p : places) {
    push(s, p.at, {.pc = 0, .rpc = -1, .at = p.at + 1, .mask = {}}, p.lanes);
    if (p.at->o[2] == ~0u) continue;
    std::uint32_t bits = 0;
    std::memcpy(&bits, s.regs + p.at->o[2] + s.first_warp * 4, sizeof bits);
    if (p.at->flags & kBarrierNegated) bits = ~bits;
    b.barriers[id].count_true += static_cast<std::uint32_t>(std::popcount(bits & p.lanes));
    b.barriers[id].count_all += static_cast<std::uint32_t>(std::popcount(p.lanes));
  }
  run_lanes(s, 0);
  s.poll = nullptr;
  s.resume = from_stack;
  if (arrive_at_barrier(s, places[0].at, static_cast<int>(id), threads, arrives == 0)) return from_stack;
  s.state = StrandState::kBarrier;
  return nullptr;
}

}  // namespace

/// Takes out of the waiting lanes of a strand's warp some whose rendezvous is complete, and has them go on;
/// none where there are none. `ended`: no lane runs that could still come.
std::optional<const Inst*> Block::complete_rendezvous(Strand& s, bool ended) {
  const ptx::Program& program = *context_.program;
  auto& waiting = waiting_[static_cast<std::size_t>(s.gang * kGangWarps + s.first_warp)];
  const std::uint32_t alive = s.alive[s.first_warp];
  for (std::size_t k = 0; k < waiting.size(); ++k) {
    const WaitingLanes first = waiting[k];
    if (ended && !forgets_ended(first)) continue;
    const auto belongs = [&](const WaitingLanes& w) {
      return w.kind == first.kind && w.named == first.named &&
             (w.at == first.at || (meets_elsewhere(w) && meets_elsewhere(first)));
    };
    std::uint32_t here = 0;
    for (const WaitingLanes& w : waiting) here |= belongs(w) ? w.lanes : 0;
    if ((first.named & alive & ~here) != 0) continue;
    std::vector<WaitingLanes> places;
    std::copy_if(waiting.begin(), waiting.end(), std::back_inserter(places), belongs);
    std::erase_if(waiting, belongs);
    s.waiting &= ~here;
    for (const WaitingLanes& p : places) ++bb_counts[basic_block(program, p.at)].warps;
    if (places.size() > 1) {
      if (first.kind == Rendezvous::kBlockBarrier) return arrive_from_places(s, places, from_stack(program));
      const bool again =
          first.kind == Rendezvous::kClusterBarrier;  // the warp has arrived: now they may wait
      run_lanes(s, here);
      if (checks != nullptr && !again) checks->warp_barrier(s);
      for (const WaitingLanes& p : places)
        push(s, p.at, {.pc = 0, .rpc = -1, .at = again ? p.at : p.at + 1, .mask = {}}, p.lanes);
      run_lanes(s, 0);
      return from_stack(program);
    }
    if (here == alive) s.depth = 0;  // no lane is elsewhere: nothing is left to meet
    push(s, first.at, {.pc = basic_block(program, first.at), .rpc = -1, .at = nullptr, .mask = {}}, here);
    run_lanes(s, here);
    return first.at;
  }
  return std::nullopt;
}

const Inst* Block::rendezvous(Strand& s, const Inst* i, std::uint32_t here, std::uint32_t named,
                              Rendezvous kind) {
  const ptx::Program& program = *context_.program;
  const int w = s.first_warp;
  const WaitingLanes arriving{
      .at = i, .kind = kind, .lanes = here, .named = named, .wanted = named & s.alive[w]};
  if (context_.device->cc_major < 7) raise_missing(s, arriving, "is elsewhere");
  auto& waiting = waiting_[static_cast<std::size_t>(s.gang * kGangWarps + w)];
  for (const WaitingLanes& other : waiting)
    if (kind == Rendezvous::kBlockBarrier && other.kind == kind && other.at != i &&
        !(is_unaligned_barrier(other) && is_unaligned_barrier(arriving)))
      raise_missing(s, other, "is at another barrier");
  const auto known = std::find_if(waiting.begin(), waiting.end(), [&](const WaitingLanes& other) {
    return other.at == i && other.kind == kind && other.named == named;
  });
  if (known == waiting.end())
    waiting.push_back(arriving);
  else
    known->lanes |= here;
  s.waiting |= here;
  --bb_counts[basic_block(program, i)].warps;  // from here on they run with those that come later, who count
  // What runs beside them goes on after them: lanes that a guard holds back, and lanes that wait for others.
  const std::uint32_t beside = s.mask[w] & ~here;
  leave_stack(s, here);
  StackEntry& top = s.stack[s.depth - 1];
  const std::uint32_t held_back = top.mask[w] & ~beside;
  if (held_back != 0) top.at = end_of_guard(program, i);
  if (beside != 0 && held_back == 0) top.at = i;
  if (beside != 0 && held_back != 0) {
    top.mask[w] = held_back;
    push(s, i, {.pc = 0, .rpc = top.rpc, .at = i, .mask = {}}, beside);
  }
  return complete_rendezvous(s, false).value_or(from_stack(program));
}

const Inst* resume_waiting(Strand& s) {
  Block& b = static_cast<Block&>(*s.block);
  if (const auto next = b.complete_rendezvous(s, true)) return *next;
  const WaitingLanes& first =
      b.waiting_[static_cast<std::size_t>(s.gang * kGangWarps + s.first_warp)].front();
  const std::uint32_t missing = first.wanted & ~first.lanes;
  raise_missing(s, first,
                (missing & s.alive[s.first_warp]) == 0    ? "ended elsewhere"
                : first.kind == Rendezvous::kBlockBarrier ? "is at another barrier"
                                                          : "waits for others elsewhere");
}

/// Lanes that poll step aside for those of their warp that the sides of a branch hold back, and go on after
/// these. False where no strand has such, or all had their turn and nothing changed.
bool Block::turn_lanes(std::uint64_t all_progress) {
  constexpr int kMostTurns = 32;  // of the lanes of a warp
  if (context_.device->cc_major < 7) return false;
  turns_ = all_progress == turned_at_ ? turns_ + 1 : 1;
  turned_at_ = all_progress;
  if (turns_ > kMostTurns) return false;
  const Inst* next = from_stack(*context_.program);
  bool any = false;
  for (Strand& s : strands) {
    const int w = s.first_warp;
    const std::uint32_t polling = s.mask[w];
    if (s.state != StrandState::kRunnable || s.resume == next || polling == 0 ||
        (s.alive[w] & ~polling & ~s.waiting) == 0)
      continue;
    if (s.depth + 1 > kMaxDepth) raise_depth(s, s.resume - 1);
    leave_stack(s, polling);
    StackEntry& top = s.stack[s.depth - 1];
    if (top.mask[w] != 0) top.at = end_of_guard(*context_.program, s.resume);
    std::copy_backward(s.stack, s.stack + s.depth, s.stack + s.depth + 1);
    s.stack[0] = {.pc = 0, .rpc = -1, .at = s.resume, .mask = {}};
    s.stack[0].mask[w] = polling;
    ++s.depth;
    s.resume = next;
    s.awaited = 0;
    any = true;
  }
  return any;
}

const Inst* await_warp(Strand& s, const Inst* i, Rendezvous kind) {
  if (s.last_warp - s.first_warp > 1) {  // warps of the gang have parted: run them one by one from here
    split_strand(s, i);
    return nullptr;
  }
  return static_cast<Block&>(*s.block).rendezvous(s, i, s.mask[s.first_warp], ~0u, kind);
}

const Inst* await_members(Strand& s, const Inst* i, std::uint32_t members, Rendezvous kind) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const std::uint32_t here = s.mask[w], alive = s.alive[w];
    for (std::uint32_t rest = here == alive ? 0 : here; rest != 0;) {
      const auto named_by = [&](int lane) {
        std::uint32_t named = 0;
        std::memcpy(&named, s.regs + members + (w * 32 + lane) * 4, sizeof named);
        return named;
      };
      const std::uint32_t named = named_by(std::countr_zero(rest));
      std::uint32_t group = 0;
      for (std::uint32_t m = rest; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        if (named_by(lane) == named) group |= 1u << lane;
      }
      rest &= ~group;
      if ((named & alive & ~here) == 0) continue;
      if (s.last_warp - s.first_warp > 1) {
        split_strand(s, i);
        return nullptr;
      }
      return static_cast<Block&>(*s.block).rendezvous(s, i, group, named, kind);
    }
  }
  return i;
}

void split_strand(Strand& s, const Inst* i) {
  Block& b = static_cast<Block&>(*s.block);
  const ptx::Program& program = *b.context_.program;
  const bool running = i != from_stack(program);
  const int first = s.first_warp, last = s.last_warp;
  auto narrow = [&](Strand& t, int w) {
    t.first_warp = w;
    t.last_warp = w + 1;
    t.active_warps = t.mask[w] != 0;
    t.active_threads = std::popcount(t.mask[w]);
    t.masked = t.mask[w] != ~0u;
    const bool held_back = running && t.mask[w] == 0 && t.depth > 0 && t.stack[t.depth - 1].mask[w] != 0;
    // Warps that the instruction's guard holds back go on behind it.
    t.resume = held_back ? end_of_guard(program, i) : running && t.mask[w] != 0 ? i : from_stack(program);
    if (t.state != StrandState::kBarrier) t.state = StrandState::kRunnable;
    if (t.alive[w] == 0) t.state = StrandState::kDone;
    if (t.mask[w] == 0) t.awaited = 0;
  };
  for (int w = first + 1; w < last; ++w) {
    Strand& t = b.add_strand(s.gang, w, w + 1);
    StackEntry* stack = t.stack;
    t = s;
    t.stack = stack;
    std::copy(s.stack, s.stack + s.depth, stack);
    narrow(t, w);
  }
  narrow(s, first);
}

}  // namespace stitchwork::sim
