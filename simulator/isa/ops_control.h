// Branches, barriers, warp-wide exchange, special registers.
#pragma once

#include <bit>

#include "simulator/isa/ops_registry.h"
#include "simulator/isa/shuffle.h"
#include "simulator/machine/findings.h"

namespace stitchwork::sim {
namespace {

SW_INLINE void count_active(Strand& s) {
  int warps = 0, threads = 0, whole = 0;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 m = s.mask[w];
    warps += m != 0;
    whole += m == ~0u;
    threads += __builtin_popcount(m);
  }
  s.active_warps = warps;
  s.active_threads = threads;
  s.masked = whole != s.last_warp - s.first_warp;
}

/// Continues with the entry on top of the divergence stack; null when none is left.
const Inst* resume_top(Strand& s) {
  while (s.depth > 0) {
    StackEntry& top = s.stack[s.depth - 1];
    u32 any = 0;
    for (int w = s.first_warp; w < s.last_warp; ++w) any |= top.mask[w];
    if (any != 0) {
      for (int w = s.first_warp; w < s.last_warp; ++w) s.mask[w] = top.mask[w];
      count_active(s);
      if (top.at == nullptr) [[likely]]
        return s.block->block_start[top.pc];
      for (int w = s.first_warp; w < s.last_warp; ++w) s.saved[w] = s.mask[w];
      const Inst* at = top.at;
      top.at = nullptr;
      return at;
    }
    --s.depth;
  }
  if (s.waiting != 0) [[unlikely]]
    return resume_waiting(s);
  s.state = StrandState::kDone;
  return nullptr;
}

/// First instruction of every basic block: reconverges, then counts. imm: block, o[0]: weight.
const Inst* enter_block(Strand& s, const Inst* i) {
  const int bb = int(i->imm);
  if (s.stack[s.depth - 1].rpc == bb) {
    --s.depth;
    return resume_top(s);
  }
  BlockRun& b = *s.block;
  b.bb_counts[bb].warps += u32(s.active_warps);
  b.bb_counts[bb].threads += u32(s.active_threads);
  b.budget -= i64(i->o[0]) * s.active_warps;
  if (b.budget < 0) [[unlikely]]
    raise_finding(s, i, FindingKind::kLivelock, "livelock", s.first_warp, 0);
  return i + 1;
}

const Inst* branch(Strand& s, const Inst* i) { return s.block->block_start[i->imm]; }

/// Conditional branch. o[0]: predicate, flags: negated, imm: target, o[1]: fall-through block, o[2]: block at
/// which the sides meet again (~0: only at exit).
const Inst* branch_if(Strand& s, const Inst* i) {
  u32 taken[kGangWarps], any_taken = 0, any_not = 0;
  const u32 flip = i->flags ? ~0u : 0;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 p = load<u32>(s.regs + i->o[0] + w * 4) ^ flip;
    taken[w] = p & s.mask[w];
    any_taken |= taken[w];
    any_not |= s.mask[w] & ~p;
  }
  if (any_not == 0) return s.block->block_start[i->imm];
  if (any_taken == 0) return i + 1;
  const i32 meet = i32(i->o[2]);
  const i32 target = i32(i->imm), next = i32(i->o[1]);
  StackEntry* top = &s.stack[s.depth - 1];
  if (s.depth + 2 > kMaxDepth) raise_depth(s, i);
  u32 not_taken[kGangWarps];
  for (int w = s.first_warp; w < s.last_warp; ++w) not_taken[w] = s.mask[w] & ~taken[w];
  // The running entry becomes the meeting point, unless it already ends there: then it is not needed.
  if (meet < 0 || top->rpc != meet) {
    top->pc = meet;
    top->at = nullptr;
    for (int w = s.first_warp; w < s.last_warp; ++w) top->mask[w] = s.mask[w];
    if (meet < 0) --s.depth;
  } else {
    --s.depth;
  }
  // A side that is already at the meeting point has nothing to run.
  if (next != meet) {
    StackEntry& e = s.stack[s.depth++];
    e.pc = next;
    e.rpc = meet;
    e.at = nullptr;
    for (int w = s.first_warp; w < s.last_warp; ++w) e.mask[w] = not_taken[w];
  }
  if (target != meet) {
    StackEntry& e = s.stack[s.depth++];
    e.pc = target;
    e.rpc = meet;
    e.at = nullptr;
    for (int w = s.first_warp; w < s.last_warp; ++w) e.mask[w] = taken[w];
  }
  return resume_top(s);
}

/// ret, exit: the active lanes leave the kernel for good.
const Inst* exit_lanes(Strand& s, const Inst*) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 leaving = s.mask[w];
    s.alive[w] &= ~leaving;
    s.block->alive_threads -= __builtin_popcount(leaving);
    for (int d = 0; d < s.depth; ++d) s.stack[d].mask[w] &= ~leaving;
  }
  return resume_top(s);
}

/// @p before an instruction that is not a branch: narrows the mask for the instruction that follows it, which
/// an unguard ends. o[0]: predicate, flags: negated, imm: instructions to skip where no lane is left; aux,
/// o[1]: Pipe of the guarded instruction.
const Inst* guard(Strand& s, const Inst* i) {
  const u32 flip = i->flags ? ~0u : 0;
  u32 any = 0;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    s.saved[w] = s.mask[w];
    s.mask[w] &= load<u32>(s.regs + i->o[0] + w * 4) ^ flip;
    any |= s.mask[w];
  }
  if (any == 0) {
    for (int w = s.first_warp; w < s.last_warp; ++w) s.mask[w] = s.saved[w];
    return i + i->imm;
  }
  const int warps = s.active_warps, threads = s.active_threads;
  count_active(s);
  s.block->hot->guarded[i->aux] += s.active_threads;
  s.active_warps = warps;
  s.active_threads = threads;
  return i + 1;
}
const Inst* unguard(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) s.mask[w] = s.saved[w] & s.alive[w];
  count_active(s);
  if (s.active_threads == 0) return resume_top(s);
  return i + 1;
}

const Inst* trap(Strand& s, const Inst* i) {
  int w = s.first_warp;
  while (s.mask[w] == 0) ++w;
  raise_finding(s, i, FindingKind::kTrap, "executes trap", w, __builtin_ctz(s.mask[w]));
}
const Inst* resume(Strand& s, const Inst*) { return resume_top(s); }

/// bar.warp.sync; o: members.
const Inst* warp_barrier(Strand& s, const Inst* i) {
  const Inst* next = await_members(s, i, i->o[0], Rendezvous::kWarpBarrier);
  return next == i ? i + 1 : next;
}

/// bar.sync / barrier.sync and the arriving half of bar.red. o[0]: barrier id slot, o[1]: thread count slot
/// or ~0, o[2]: predicate slot of bar.red or ~0; flags: kBarrierArrives and the like.
const Inst* block_barrier(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == s.alive[w]) continue;
    if (const Inst* next = await_warp(s, i, Rendezvous::kBlockBarrier); next != i) return next;
  }
  u32 id = 0, threads = 0;
  bool first = true;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    const int e = w * 32 + __builtin_ctz(s.mask[w]);
    const u32 its_id = load<u32>(s.regs + i->o[0] + e * 4) & 15;
    const u32 its_threads = i->o[1] == ~0u ? 0 : load<u32>(s.regs + i->o[1] + e * 4);
    if (!first && (its_id != id || its_threads != threads)) {  // warps of the gang go to different barriers
      split_strand(s, i);
      return nullptr;
    }
    first = false;
    id = its_id;
    threads = its_threads;
  }
  if (i->o[2] != ~0u) {
    BarrierSlot& slot = s.block->barriers[id];
    for (int w = s.first_warp; w < s.last_warp; ++w) {
      const u32 p = load<u32>(s.regs + i->o[2] + w * 4) ^ (i->flags & kBarrierNegated ? ~0u : 0);
      slot.count_true += __builtin_popcount(p & s.mask[w]);
      slot.count_all += __builtin_popcount(s.mask[w]);
    }
  }
  s.poll = nullptr;
  s.resume = i + 1;
  if (arrive_at_barrier(s, i, int(id), threads, !(i->flags & kBarrierArrives))) return i + 1;
  s.state = StrandState::kBarrier;
  return nullptr;
}

/// Second half of bar.red: d = popc | all | any of the phase just completed (flags 0, 1, 2).
template <bool M>
const Inst* barrier_result(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    const u32 id = load<u32>(s.regs + i->o[1] + (w * 32 + __builtin_ctz(s.mask[w])) * 4) & 15;
    const BarrierSlot& slot = s.block->barriers[id];
    if (i->flags == 0) {
      for (int l = 0; l < 32; ++l) {
        if (s.mask[w] >> l & 1) store<u32>(s.regs + i->o[0] + (w * 32 + l) * 4, slot.result_true);
      }
    } else {
      const bool v = i->flags == 1 ? slot.result_true == slot.result_all : slot.result_true != 0;
      const u32 old = load<u32>(s.regs + i->o[0] + w * 4);
      store<u32>(s.regs + i->o[0] + w * 4, (old & ~s.mask[w]) | (v ? s.mask[w] : 0));
    }
  }
  return i + 1;
}

/// Which lane each lane reads in a shuffle, and whether that lane is in bounds (PTX ISA, shfl.sync).
struct ShufflePattern {
  alignas(64) i32 from[32];
  u32 valid = 0;
};
/// shfl.sync: flags 0 idx, 1 up, 2 down, 3 bfly; o: d, p (~0: none), a, b, c, members.
template <bool M>
const Inst* shuffle(Strand& s, const Inst* i) {
  if (M)
    if (const Inst* next = await_members(s, i, i->o[5], Rendezvous::kShuffle); next != i) return next;
  ShufflePattern pattern;
  u32 known_b = 0, known_c = 0;
  bool known = false;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 mask = s.mask[w];
    if (mask == 0) continue;
    const std::byte* base = s.regs + w * 128;
    const u32 b = load<u32>(base + i->o[3]), c = load<u32>(base + i->o[4]);
    Words<u32> differs = {};
    for (int l = 0; l < 32; l += kWords)
      differs |=
          (load<Words<u32>>(base + i->o[3] + l * 4) ^ b) | (load<Words<u32>>(base + i->o[4] + l * 4) ^ c);
    const bool uniform = !any(differs);
    if (!uniform || !known || known_b != b || known_c != c) {
      u32 n[32], bounds[32];
      __builtin_memcpy(n, base + i->o[3], 128);
      __builtin_memcpy(bounds, base + i->o[4], 128);
      pattern.valid = 0;
      for (u32 l = 0; l < 32; ++l) {
        bool ok;
        pattern.from[l] = shuffle_source(i->flags, l, n[l], bounds[l], &ok);
        pattern.valid |= u32(ok) << l;
      }
      known = uniform;
      known_b = b;
      known_c = c;
    }
    Words<u32> picked[32 / kWords];  // all, before the first of them may overwrite what others read
    SW_UNROLL
    for (int l = 0; l < 32; l += kWords)
      picked[l / kWords] =
          pick(base + i->o[2], load<Words<i32>>(reinterpret_cast<const std::byte*>(pattern.from + l)));
    std::byte* const d = s.regs + i->o[0] + w * 128;
    SW_UNROLL
    for (int l = 0; l < 32; l += kWords) {
      Words<u32> v = picked[l / kWords];
      if (M) v = select<u32, kWords>(expand<kWords>(mask >> l), v, load<Words<u32>>(d + l * 4));
      store(d + l * 4, v);
    }
    if (i->o[1] != ~0u) {
      std::byte* p = s.regs + i->o[1] + w * 4;
      store<u32>(p, (load<u32>(p) & ~mask) | (pattern.valid & mask));
    }
  }
  return i + 1;
}

/// vote.sync: flags 0 all, 1 any, 2 uni, 3 ballot; o: d, p, members; aux 1: negated predicate.
const Inst* vote(Strand& s, const Inst* i) {
  if (const Inst* next = await_members(s, i, i->o[2], Rendezvous::kVote); next != i) return next;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for_groups(s, w, i->o[2], [&](u32 group, u32) {
      const u32 p = (load<u32>(s.regs + i->o[1] + w * 4) ^ (i->aux ? ~0u : 0)) & group;
      if (i->flags == 3) {
        for (u32 m = group; m != 0; m &= m - 1)
          store<u32>(s.regs + i->o[0] + (w * 32 + __builtin_ctz(m)) * 4, p);
        return;
      }
      const bool v = i->flags == 0 ? p == group : i->flags == 1 ? p != 0 : p == 0 || p == group;
      std::byte* d = s.regs + i->o[0] + w * 4;
      store<u32>(d, (load<u32>(d) & ~group) | (v ? group : 0));
    });
  }
  return i + 1;
}
const Inst* active_mask(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (int l = 0; l < 32; ++l) {
      if (s.mask[w] >> l & 1) store<u32>(s.regs + i->o[0] + (w * 32 + l) * 4, s.mask[w]);
    }
  }
  return i + 1;
}
/// The smaller or larger of two floats: a NaN gives the other, or is the result under .NaN; -0 lies below +0.
inline u32 extreme_of(u32 x, u32 y, bool greatest, bool keep_nan) {
  const float a = std::bit_cast<float>(x), b = std::bit_cast<float>(y);
  if (a != a || b != b) {
    constexpr u32 kCanonicalNan = 0x7fffffff;
    return keep_nan || (a != a && b != b) ? kCanonicalNan : a != a ? y : x;
  }
  const bool less = a < b || (a == b && x >> 31 && !(y >> 31));
  return less == greatest ? y : x;
}
/// redux.sync: flags 0 add, 1 min, 2 max, 3 and, 4 or, 5 xor; o: d, a, members; aux: kReduxSigned and the
/// like.
const Inst* redux(Strand& s, const Inst* i) {
  if (const Inst* next = await_members(s, i, i->o[2], Rendezvous::kRedux); next != i) return next;
  const auto combine = [&](u32 r, u32 v) -> u32 {
    if (i->aux & kReduxFloat) return extreme_of(r, v, i->flags == 2, i->aux & kReduxNan);
    const bool less = i->aux & kReduxSigned ? i32(v) < i32(r) : v < r;
    switch (i->flags) {
      case 0:
        return r + v;
      case 1:
        return less ? v : r;
      case 2:
        return less ? r : v;
      case 3:
        return r & v;
      case 4:
        return r | v;
      default:
        return r ^ v;
    }
  };
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for_groups(s, w, i->o[2], [&](u32 group, u32) {
      u32 r = 0;
      for (u32 m = group; m != 0; m &= m - 1) {
        u32 v = load<u32>(s.regs + i->o[1] + (w * 32 + __builtin_ctz(m)) * 4);
        if (i->aux & kReduxAbs) v &= 0x7fffffff;
        r = m != group             ? combine(r, v)
            : i->aux & kReduxFloat ? extreme_of(v, v, false, i->aux & kReduxNan)
                                   : v;
      }
      for (u32 m = group; m != 0; m &= m - 1)
        store<u32>(s.regs + i->o[0] + (w * 32 + __builtin_ctz(m)) * 4, r);
    });
  }
  return i + 1;
}
/// %clock, %clock64, %globaltimer: a counter that advances with every read. flags 1: 64-bit.
const Inst* read_clock(Strand& s, const Inst* i) {
  const u64 now = s.block->clock += 32;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (int l = 0; l < 32; ++l) {
      if (!(s.mask[w] >> l & 1)) continue;
      if (i->flags)
        store<u64>(s.regs + i->o[0] + (w * 32 + l) * 8, now);
      else
        store<u32>(s.regs + i->o[0] + (w * 32 + l) * 4, u32(now));
    }
  }
  return i + 1;
}

void add_control_rows() {
  const auto other = Pipe::kOther;
  add_row("@enter", "", other, enter_block, enter_block);
  add_row("@bra", "", other, branch, branch);
  add_row("@bra_if", "", other, branch_if, branch_if);
  add_row("@exit", "", other, exit_lanes, exit_lanes);
  add_row("@guard", "", other, guard, guard);
  add_row("@unguard", "", other, unguard, unguard);
  add_row("@trap", "", other, trap, trap);
  add_row("@resume", "", other, resume, resume);
  add_row("@warp_barrier", "", other, warp_barrier, warp_barrier);
  add_row("@barrier", "", other, block_barrier, block_barrier);
  add_row("@barrier_result", "", other, barrier_result<false>, barrier_result<true>);
  add_row("@shuffle", "", other, shuffle<false>, shuffle<true>);
  add_row("@vote", "", other, vote, vote);
  add_row("@activemask", "", other, active_mask, active_mask);
  add_row("@redux", "", other, redux, redux);
  add_row("@clock", "", other, read_clock, read_clock);
}

}  // namespace
}  // namespace stitchwork::sim
