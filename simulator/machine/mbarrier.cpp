#include "simulator/machine/mbarrier.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "simulator/machine/async_copy.h"
#include "simulator/machine/atomics.h"
#include "simulator/machine/bulk_copy.h"
#include "simulator/machine/cluster.h"

namespace stitchwork::sim {
namespace {

constexpr std::uint64_t kWindowMask = (std::uint64_t{1} << kAllocationShift) - 1;
constexpr std::uint64_t kRankMask = (std::uint64_t{1} << kClusterRankShift) - 1;

// What Mbarrier::state is made of.
constexpr int kStatePendingBits = 20, kStateObjectBits = 16, kStatePhaseBits = 24;
constexpr std::uint64_t kStateTag = std::uint64_t{1} << 63;

template <class T>
T lane_value(const Strand& s, std::uint32_t slot, int w, int l) {
  T v;
  std::memcpy(&v, s.regs + slot + static_cast<std::size_t>(w * 32 + l) * sizeof v, sizeof v);
  return v;
}

/// The object at hand, and who has it.
struct Target {
  BlockRun& owner;
  Mbarrier& m;
};

[[noreturn]] void raise(Strand& s, const Inst* i, const Mbarrier& m, const std::string& what, int w, int l) {
  raise_finding(s, i, FindingKind::kMbarrier,
                fmt::format("{} the mbarrier at shared memory offset {}, phase {} of which {}", what,
                            m.offset, m.phase, m.wants())
                    .c_str(),
                w, l);
}

void keep_bits(BlockRun& owner, const Mbarrier& m) {
  const std::uint64_t bits = m.bits();
  std::memcpy(owner.shared + m.offset, &bits, sizeof bits);
}

/// The next phase, if the current one is complete (9.7.13.15.6).
SyncOrder order_of(const Inst* i) {
  return {.relaxed = (i->aux & kMbarrierRelaxed) != 0,
          .scope = i->aux & kMbarrierOfBlock ? Scope::kBlock : Scope::kCluster};
}

void complete_phase(Target t) {
  if (t.m.pending == 0 && t.m.tx == 0) {
    ++t.m.phase;
    t.m.pending = t.m.expected;
    if (t.owner.checks != nullptr) t.owner.checks->mbarrier_complete(t.m.offset);
  }
  keep_bits(t.owner, t.m);
}

void init(Strand& s, const Inst* i, const SharedPlace& at, std::uint32_t count, int w, int l) {
  Mbarriers& all = *at.block->mbarriers;
  at.block->has_mbarriers = true;
  if (const Mbarrier* m = all.touched(at.offset, Mbarrier::kBytes); m != nullptr)
    raise(s, i, *m, "initialises, without mbarrier.inval before,", w, l);
  if (count == 0 || count > Mbarrier::kMaxCount)
    raise_finding(s, i, FindingKind::kMbarrier,
                  fmt::format("initialises an mbarrier for {} arrivals; 1 to {} are possible", count,
                              Mbarrier::kMaxCount)
                      .c_str(),
                  w, l);
  const Mbarrier& m =
      all.live.emplace_back(Mbarrier{.offset = at.offset, .expected = count, .pending = count});
  keep_bits(*at.block, m);
  if (at.block->checks != nullptr) at.block->checks->mbarrier_init(s, w, at.offset);
}

void expect_tx(Strand& s, const Inst* i, Target t, std::uint32_t bytes, int w, int l) {
  const std::int64_t tx = std::int64_t{t.m.tx} + bytes;
  if (tx > Mbarrier::kMaxCount)
    raise(s, i, t.m, fmt::format("expects {} more bytes (tx-count {} is too large) of", bytes, tx), w, l);
  t.m.tx = static_cast<std::int32_t>(tx);
  keep_bits(t.owner, t.m);
}

void arrive(Strand& s, const Inst* i, Target t, std::uint32_t count, bool drop, int w, int l) {
  if (count == 0 || count > t.m.pending) raise(s, i, t.m, fmt::format("arrives {} times at", count), w, l);
  if ((i->aux & kMbarrierNoComplete) && count == t.m.pending && t.m.tx == 0)
    raise(s, i, t.m, "completes by an arrival with .noComplete the current phase of", w, l);
  t.m.pending -= count;
  if (drop) t.m.expected -= std::min(count, t.m.expected);
  if (s.block->checks != nullptr)
    s.block->checks->mbarrier_arrive(s, w, *t.owner.checks, t.m.offset, order_of(i));
  complete_phase(t);
}

/// The address that a lane gives, in the window of shared memory.
std::uint64_t address_of(Strand& s, const Inst* i, int w, int l) {
  const std::uint64_t address =
      i->aux & kAddress32 ? lane_value<std::uint32_t>(s, i->o[4], w, l) + static_cast<std::uint32_t>(i->imm)
                          : lane_value<std::uint64_t>(s, i->o[4], w, l) + static_cast<std::uint64_t>(i->imm);
  if (!(i->aux & kMbarrierGeneric)) return address;
  if (address >> kAllocationShift != kSharedWindow)
    raise_finding(s, i, FindingKind::kOutOfBounds, "takes an address that is not in shared memory", w, l);
  return address & kWindowMask;
}

/// Whether the phase that the lane asks for is complete (9.7.13.15.16).
bool is_complete(Strand& s, const Inst* i, const Mbarrier& m, int w, int l) {
  if (i->aux & kMbarrierParity) {
    const auto parity = lane_value<std::uint32_t>(s, i->o[1], w, l);
    if (parity > 1) raise(s, i, m, fmt::format("waits for the phase of parity {} (0 or 1) of", parity), w, l);
    return (m.phase & 1) != parity;
  }
  const auto state = lane_value<std::uint64_t>(s, i->o[1], w, l);
  const std::uint64_t object = state >> kStatePendingBits & ((1u << kStateObjectBits) - 1);
  constexpr std::uint64_t kPhases = std::uint64_t{1} << kStatePhaseBits;
  const std::uint64_t behind = (m.phase - (state >> (kStatePendingBits + kStateObjectBits))) & (kPhases - 1);
  if (!(state & kStateTag) || object != m.offset / Mbarrier::kBytes)
    raise(s, i, m, "waits with what is no state of", w, l);
  if (behind > 1) raise(s, i, m, "waits with the state of a phase before the last one of", w, l);
  return behind == 1;
}

}  // namespace

std::uint64_t Mbarrier::bits() const {
  return std::uint64_t{pending} | std::uint64_t{expected} << 20 |
         (static_cast<std::uint64_t>(tx) & 0x1fffff) << 40 | (phase & 1) << 61;
}

std::uint64_t Mbarrier::state() const {
  return kStateTag | (phase & ((1u << kStatePhaseBits) - 1)) << (kStatePendingBits + kStateObjectBits) |
         (offset / kBytes) << kStatePendingBits | pending;
}

std::string Mbarrier::wants() const {
  if (tx < 0) return fmt::format("wants {} more arrivals and was given {} bytes too many", pending, -tx);
  return fmt::format("wants {} more arrivals and {} more bytes", pending, tx);
}

SharedPlace shared_place(Strand& s, const Inst* i, std::uint64_t address, std::uint64_t bytes,
                         unsigned alignment, bool remote, bool write, int w, int l) {
  BlockRun& b = *s.block;
  if (address % alignment != 0) raise_misaligned(s, i, address, alignment, w, l);
  const std::uint64_t own = address - b.shared_base;
  if (own <= b.shared_bytes && bytes <= b.shared_bytes - own) return {&b, own};
  if (!remote || b.cluster == nullptr || (address & kRankMask) + bytes > kRankMask)
    raise_window(s, i, "shared", own, static_cast<unsigned>(bytes), b.shared_bytes, write, w, l);
  // The ends of the range; what lies between them is the same block's.
  cluster_byte(s, i, address, alignment, write, w, l);
  cluster_byte(s, i, address + bytes - alignment, alignment, write, w, l);
  return {&block_of_rank(b, address >> kClusterRankShift), address & kRankMask};
}

Mbarrier& find_mbarrier(Strand& s, const Inst* i, const SharedPlace& at, int w, int l) {
  Mbarrier* const m = at.block->mbarriers->find(at.offset);
  if (m == nullptr)
    raise_finding(
        s, i, FindingKind::kMbarrier,
        fmt::format("uses an mbarrier at shared memory offset {}, where none is initialised", at.offset)
            .c_str(),
        w, l);
  std::uint64_t bits = 0;
  std::memcpy(&bits, at.block->shared + at.offset, sizeof bits);
  if (bits != m->bits()) raise(s, i, *m, "uses, after an ordinary store wrote over it,", w, l);
  if (s.block->checks != nullptr) s.block->checks->mbarrier_use(s, i, w, l, *at.block->checks, at.offset);
  return *m;
}

void complete_tx(Strand& s, const Inst* i, BlockRun& owner, Mbarrier& m, std::uint32_t bytes, int w, int l) {
  const std::int64_t tx = std::int64_t{m.tx} - bytes;
  if (tx < -std::int64_t{Mbarrier::kMaxCount})
    raise(s, i, m, fmt::format("completes {} bytes (tx-count {} is too small) of", bytes, tx), w, l);
  m.tx = static_cast<std::int32_t>(tx);
  ++s.block->progress;
  complete_phase({owner, m});
}

std::uint64_t expect_async_arrival(Strand& s, const Inst* i, int w, int l) {
  const SharedPlace at =
      shared_place(s, i, address_of(s, i, w, l), Mbarrier::kBytes, Mbarrier::kBytes, false, true, w, l);
  ++s.block->hot->accesses;
  Mbarrier& m = find_mbarrier(s, i, at, w, l);
  if (i->aux & kMbarrierNoIncrement) return at.offset;
  if (m.pending >= Mbarrier::kMaxCount) raise(s, i, m, "adds an arrival to", w, l);
  ++m.pending;
  keep_bits(*at.block, m);
  return at.offset;
}

void arrive_after_copies(Strand& s, const Inst* i, std::uint64_t offset, int w, int l) {
  ++s.block->progress;
  arrive(s, i, {*s.block, find_mbarrier(s, i, {s.block, offset}, w, l)}, 1, false, w, l);
}

namespace {

/// What a lane does to an mbarrier at `offset` of its block's shared memory, waits and init left out.
void change(Strand& s, const Inst* i, const Target& t, std::uint64_t offset, std::uint32_t value, int w,
            int l) {
  const auto op = static_cast<MbarrierOp>(i->flags);
  switch (op) {
    case MbarrierOp::kInval:
      if (t.owner.checks != nullptr) t.owner.checks->mbarrier_inval(offset);
      std::erase_if(t.owner.mbarriers->live, [&](const Mbarrier& x) { return x.offset == offset; });
      break;
    case MbarrierOp::kExpectTx:
      expect_tx(s, i, t, value, w, l);
      break;
    case MbarrierOp::kCompleteTx:
      complete_tx(s, i, t.owner, t.m, value, w, l);
      break;
    default: {
      const bool expects = i->aux & kMbarrierExpects;
      if (expects) expect_tx(s, i, t, value, w, l);
      arrive(s, i, t, expects ? 1 : value, op == MbarrierOp::kArriveDrop, w, l);
    }
  }
}

}  // namespace

const Inst* run_mbarrier(Strand& s, const Inst* i) {
  const auto op = static_cast<MbarrierOp>(i->flags);
  const bool waits = op == MbarrierOp::kWait, returns = i->o[0] != ~0u;
  const bool may_be_remote = i->aux & kMbarrierRemote;
  std::uint64_t awaited = 0;  // by a lane in vain
  bool passed_one = false;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    std::uint32_t complete = 0;
    std::uint64_t looked_at = ~std::uint64_t{0};
    for (std::uint32_t m = s.mask[w]; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const SharedPlace at = shared_place(s, i, address_of(s, i, w, l), Mbarrier::kBytes, Mbarrier::kBytes,
                                          may_be_remote, !waits, w, l);
      ++s.block->hot->accesses;
      const std::uint32_t value = i->o[1] == ~0u || (waits && !(i->aux & kMbarrierParity))
                                      ? 1
                                      : lane_value<std::uint32_t>(s, i->o[1], w, l);
      if (op == MbarrierOp::kInit) {
        init(s, i, at, value, w, l);
        ++s.block->progress;
        continue;
      }
      const Target t{*at.block, find_mbarrier(s, i, at, w, l)};
      if (waits) {
        if (looked_at != at.offset) {
          land_bulk_loads(s, t.owner, at.offset);
          land_async_arrivals(s, at.offset);
        }
        if (!is_complete(s, i, t.m, w, l)) {
          awaited = at.offset + 1;
          continue;
        }
        if (!(complete != 0 && looked_at == at.offset) && s.block->checks != nullptr)
          s.block->checks->mbarrier_wait(s, w, at.offset, order_of(i));
        looked_at = at.offset;
        complete |= 1u << l;
        continue;
      }
      ++s.block->progress;
      if (returns && &t.owner != s.block) raise(s, i, t.m, "asks for the state of the other block's", w, l);
      if (returns) {
        const std::uint64_t state = t.m.state();
        std::memcpy(s.regs + i->o[0] + static_cast<std::size_t>(w * 32 + l) * 8, &state, sizeof state);
      }
      change(s, i, t, at.offset, value, w, l);
    }
    if (waits && s.mask[w] != 0) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, s.regs + i->o[0] + w * 4, sizeof bits);
      bits = (bits & ~s.mask[w]) | complete;
      std::memcpy(s.regs + i->o[0] + w * 4, &bits, sizeof bits);
      passed_one |= complete == s.mask[w];
    }
  }
  if (!waits) return i + 1;
  s.awaited = awaited;
  if (awaited == 0) return i + 1;
  // Some warps have to wait: the others, which these may be waiting for, go on by themselves.
  bool apart = passed_one;
  for (int w = s.first_warp; w < s.last_warp; ++w) apart |= s.mask[w] == 0 && s.alive[w] != 0;
  s.resume = i + 1;
  if (apart) {
    split_strand(s, i + 1);
    return nullptr;
  }
  s.state = StrandState::kYielded;
  return nullptr;
}

const Inst* run_pending_count(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (std::uint32_t m = s.mask[w]; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const auto state = lane_value<std::uint64_t>(s, i->o[1], w, l);
      if (!(state & kStateTag))
        raise_finding(s, i, FindingKind::kMbarrier, "takes what no arrival at an mbarrier returned", w, l);
      const auto count = static_cast<std::uint32_t>(state & Mbarrier::kMaxCount);
      std::memcpy(s.regs + i->o[0] + (w * 32 + l) * 4, &count, sizeof count);
    }
  }
  return i + 1;
}

}  // namespace stitchwork::sim
