// Carry chains, warp-wide matching, asynchronous copies, and what the system's functions do.
#pragma once

#include "simulator/isa/ops_convert_half.h"
#include "simulator/isa/ops_memory.h"
#include "simulator/machine/async_copy.h"
#include "simulator/machine/printf.h"

namespace stitchwork::sim {
namespace {

/// The carry instructions by name: sum or product with a carry out of U's bits; wide enough for both.
enum class CarryOp { kAdd, kSub, kMadLow, kMadHigh };

/// o: d, carry out (~0: none), a, b, c (of mad), carry in (~0: none). T: u32, i32, u64 or i64. The flag is
/// the carry of the adder, a difference being a + ~b + 1: a borrow clears it, which addc after sub.cc and
/// subc after add.cc see (the PTX ISA leaves the mix open; so it is in the machine code that ptxas 13.0 makes
/// of it).
template <CarryOp kOp, class T>
const Inst* carry(Strand& s, const Inst* i) {
  using U = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<sizeof(T) == 8, __int128, i64>;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 mask = s.mask[w];
    if (mask == 0) continue;
    const u32 in = i->o[5] != ~0u ? load<u32>(s.regs + i->o[5] + w * 4) : 0;
    u32 out = 0;
    for (u32 m = mask; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m), e = (w * 32 + l) * int(sizeof(T));
      U a = load<U>(s.regs + i->o[2] + e), b = load<U>(s.regs + i->o[3] + e);
      const bool flag = in >> l & 1;
      if constexpr (kOp == CarryOp::kMadLow || kOp == CarryOp::kMadHigh) {
        const Wide product = Wide(T(a)) * Wide(T(b));
        a = kOp == CarryOp::kMadHigh ? U(product >> (sizeof(T) * 8)) : U(a * b);
        b = load<U>(s.regs + i->o[4] + e);
      }
      U r;
      bool carries;
      if constexpr (kOp == CarryOp::kSub) {
        const U borrow = i->o[5] != ~0u && !flag;
        carries = !__builtin_sub_overflow(a, b, &r);
        carries &= !__builtin_sub_overflow(r, borrow, &r);
      } else {
        carries = __builtin_add_overflow(a, b, &r);
        carries |= __builtin_add_overflow(r, U(flag), &r);
      }
      out |= u32(carries) << l;
      store<U>(s.regs + i->o[0] + e, r);
    }
    if (i->o[1] != ~0u) {
      std::byte* p = s.regs + i->o[1] + w * 4;
      store<u32>(p, (load<u32>(p) & ~mask) | out);
    }
  }
  return i + 1;
}

/// match.sync. o: d, p (~0: none), a, members; flags 1: all, 2: 64-bit values.
const Inst* match(Strand& s, const Inst* i) {
  if (const Inst* next = await_members(s, i, i->o[3], Rendezvous::kMatch); next != i) return next;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 mask = s.mask[w];
    u64 a[32];
    for (int l = 0; l < 32; ++l)
      a[l] = i->flags & 2 ? load<u64>(s.regs + i->o[2] + (w * 32 + l) * 8)
                          : load<u32>(s.regs + i->o[2] + (w * 32 + l) * 4);
    u32 equal_bits = 0;
    for (u32 m = mask; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      const u32 members = load<u32>(s.regs + i->o[3] + (w * 32 + l) * 4) & mask;
      u32 same = 0;
      for (u32 k = members; k != 0; k &= k - 1) same |= u32(a[__builtin_ctz(k)] == a[l]) << __builtin_ctz(k);
      const bool equal = same == members;
      if (i->flags & 1) same = equal ? members : 0;
      equal_bits |= u32(equal) << l;
      store<u32>(s.regs + i->o[0] + (w * 32 + l) * 4, same);
    }
    if (i->o[1] != ~0u) {
      std::byte* p = s.regs + i->o[1] + w * 4;
      store<u32>(p, (load<u32>(p) & ~mask) | (equal_bits & mask));
    }
  }
  return i + 1;
}

/// elect.sync: the lowest of the members. o: d, p, members.
const Inst* elect(Strand& s, const Inst* i) {
  if (const Inst* next = await_members(s, i, i->o[2], Rendezvous::kElect); next != i) return next;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for_groups(s, w, i->o[2], [&](u32 group, u32) {
      const u32 leader = u32(__builtin_ctz(group));
      for (u32 m = group; m != 0; m &= m - 1)
        store<u32>(s.regs + i->o[0] + (w * 32 + __builtin_ctz(m)) * 4, leader);
      std::byte* p = s.regs + i->o[1] + w * 4;
      store<u32>(p, (load<u32>(p) & ~group) | 1u << leader);
    });
  }
  return i + 1;
}

/// cp.async: count bytes from global memory o[5] to shared memory o[4] + imm; o[2]: bytes to read, the rest
/// being zero (~0: all), o[3]: predicate to read none (~0: never).
const Inst* async_copy(Strand& s, const Inst* i) {
  BlockRun& b = *s.block;
  const u32 bytes = i->count;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const u32 mask = s.mask[w];
    if (mask == 0) continue;
    alignas(64) u64 to[32];
    u64 from[32];
    lane_addresses(s, i, w, i->o[4], to);
    const u32 skip = i->o[3] != ~0u ? load<u32>(s.regs + i->o[3] + w * 4) : 0;
    AddressCache& cache = b.caches[i->id];
    u32 reading = 0;
    for (u32 m = mask; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m);
      from[l] = load<u64>(s.regs + i->o[5] + (w * 32 + l) * 8);
      // An address of shared memory may be a generic one.
      to[l] = (to[l] & kAllocationOffsetMask) - b.shared_base;
      u32 size = i->o[2] != ~0u ? load<u32>(s.regs + i->o[2] + (w * 32 + l) * 4) : bytes;
      if (size > bytes) size = bytes;
      if (skip >> l & 1) size = 0;
      if ((to[l] & (bytes - 1)) != 0) [[unlikely]]
        raise_misaligned(s, i, to[l], bytes, w, l);
      if (to[l] > b.shared_bytes || to[l] + bytes > b.shared_bytes) [[unlikely]]
        raise_window(s, i, "shared", to[l], bytes, b.shared_bytes, true, w, l);
      std::byte data[16] = {};
      if (size != 0) {
        if ((from[l] & (bytes - 1)) != 0) [[unlikely]]
          raise_misaligned(s, i, from[l], bytes, w, l);
        if (from[l] < cache.lo || from[l] + size > cache.hi) [[unlikely]]
          find_allocation(s, i, cache, from[l], size, false, w, l);
        __builtin_memcpy(data, cache.host + (from[l] - cache.lo), size);
        reading |= 1u << l;
        b.hot->gld_bytes += size;
      }
      queue_async_copy(s, i, w, l, to[l], data, size);
    }
    b.hot->accesses += 2 * __builtin_popcount(mask);
    ++b.hot->async_copies;
    count_shared(*b.hot, true, shared_cost_of_lanes(Lanes<u64>(to), mask, bytes));
    if (reading != 0) {
      ++b.hot->gld_requests;
      const Touched touched = log_lanes(b, Lanes<u64>(from), reading, 0, through_l1(b, i));
      b.hot->gld_transactions += touched.sectors;
      b.hot->l1_wavefronts += l1_wavefronts(touched, u32(__builtin_popcount(reading)) * bytes);
    }
  }
  return i + 1;
}
const Inst* async_commit(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w)
    if (s.mask[w] != 0) commit_async_copies(s, w);
  return i + 1;
}
/// imm: groups that may stay open; flags 1: none, and copies of no group are waited for too; o[0]: the basic
/// block.
const Inst* async_wait(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w)
    if (s.mask[w] != 0) finish_async_copies(s, i, w, u32(i->imm), i->flags != 0);
  return i + 1;
}

/// o: message, file, line.
const Inst* assert_fail(Strand& s, const Inst* i) {
  int w = s.first_warp;
  while (s.mask[w] == 0) ++w;
  const int l = __builtin_ctz(s.mask[w]), e = w * 32 + l;
  raise_assertion(s, i, load<u64>(s.regs + i->o[0] + e * 8), load<u64>(s.regs + i->o[1] + e * 8),
                  load<u32>(s.regs + i->o[2] + e * 4), w, l);
}
/// o: result (~0: none), format, address of the values.
const Inst* print(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (u32 m = s.mask[w]; m != 0; m &= m - 1) {
      const int l = __builtin_ctz(m), e = w * 32 + l;
      const u32 count = print_formatted(s, i, load<u64>(s.regs + i->o[1] + e * 8),
                                        load<u64>(s.regs + i->o[2] + e * 8), w, l);
      if (i->o[0] != ~0u) store<u32>(s.regs + i->o[0] + e * 4, count);
    }
  }
  return i + 1;
}

void add_special_rows() {
  const auto other = Pipe::kOther;
#define SW_CARRY(NAME, ...) add_row(NAME, "", other, carry<__VA_ARGS__>, carry<__VA_ARGS__>)
  SW_CARRY("@carry.add.32", CarryOp::kAdd, u32);
  SW_CARRY("@carry.add.64", CarryOp::kAdd, u64);
  SW_CARRY("@carry.sub.32", CarryOp::kSub, u32);
  SW_CARRY("@carry.sub.64", CarryOp::kSub, u64);
  SW_CARRY("@carry.mad.lo.32", CarryOp::kMadLow, u32);
  SW_CARRY("@carry.mad.lo.64", CarryOp::kMadLow, u64);
  SW_CARRY("@carry.mad.hi.u32", CarryOp::kMadHigh, u32);
  SW_CARRY("@carry.mad.hi.s32", CarryOp::kMadHigh, i32);
  SW_CARRY("@carry.mad.hi.u64", CarryOp::kMadHigh, u64);
  SW_CARRY("@carry.mad.hi.s64", CarryOp::kMadHigh, i64);
#undef SW_CARRY
  add_row("@match", "", other, match, match);
  add_row("@elect", "", other, elect, elect);
  add_row("@async.copy", "", other, async_copy, async_copy);
  add_row("@async.commit", "", other, async_commit, async_commit);
  add_row("@async.wait", "", other, async_wait, async_wait);
  add_row("@assertfail", "", other, assert_fail, assert_fail);
  add_row("@printf", "", other, print, print);
}

}  // namespace
}  // namespace stitchwork::sim
