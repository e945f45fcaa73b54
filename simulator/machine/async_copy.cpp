#include "simulator/machine/async_copy.h"

#include <bit>
#include <cstring>

#include "simulator/machine/block.h"
#include "simulator/machine/mbarrier.h"

namespace stitchwork::sim {
namespace {

AsyncCopies& of_warp(Strand& s, int warp) { return s.block->async[s.gang * kGangWarps + warp]; }

void land(Strand& s, int warp, const AsyncCopies::Copy& copy) {
  if (s.block->checks != nullptr) s.block->checks->async_write(s, copy.inst, warp, copy.lane, copy.to);
  std::memcpy(s.block->shared + copy.to, copy.data.data(), copy.inst->count);
}

}  // namespace

void queue_async_copy(Strand& s, const Inst* i, int warp, int lane, std::uint64_t to, const std::byte* data,
                      unsigned read) {
  AsyncCopies& copies = of_warp(s, warp);
  AsyncCopies::Copy& copy = copies.pending.emplace_back();
  copy.inst = i;
  copy.group = copies.committed[static_cast<std::size_t>(lane)];
  copy.lane = static_cast<std::uint8_t>(lane);
  copy.read = static_cast<std::uint8_t>(read);
  copy.to = to;
  copy.number = copies.issued++;
  std::memcpy(copy.data.data(), data, i->count);
  if (s.block->checks != nullptr) s.block->checks->async_issued(s, i, warp, lane, to);
}

void commit_async_copies(Strand& s, int warp) {
  AsyncCopies& copies = of_warp(s, warp);
  for (std::uint32_t m = s.mask[warp]; m != 0; m &= m - 1)
    ++copies.committed[static_cast<std::size_t>(__builtin_ctz(m))];
}

void finish_async_copies(Strand& s, const Inst* i, int warp, std::uint32_t open, bool all) {
  AsyncCopies& copies = of_warp(s, warp);
  BasicBlockCount& count = s.block->bb_counts[i->o[0]];
  ++count.waits;
  for (const AsyncCopies::Copy& copy : copies.pending)
    if (s.mask[warp] >> copy.lane & 1) count.outstanding += copy.read;
  count.ended += std::erase_if(copies.pending, [&](const AsyncCopies::Copy& copy) {
    if (!(s.mask[warp] >> copy.lane & 1)) return false;
    if (!all && std::uint64_t{copy.group} + open >= copies.committed[copy.lane]) return false;
    land(s, warp, copy);
    return true;
  });
}

void land_async_arrivals(Strand& s, std::uint64_t mbarrier) {
  Block& b = static_cast<Block&>(*s.block);
  for (Strand& issuer : b.strands) {
    for (int w = issuer.first_warp; w < issuer.last_warp; ++w) {
      AsyncCopies& copies = of_warp(issuer, w);
      std::vector<AsyncCopies::Arrival> arrivals;
      std::erase_if(copies.arrivals, [&](const AsyncCopies::Arrival& a) {
        if (a.mbarrier == mbarrier) arrivals.push_back(a);
        return a.mbarrier == mbarrier;
      });
      for (const AsyncCopies::Arrival& a : arrivals) {
        std::erase_if(copies.pending, [&](const AsyncCopies::Copy& copy) {
          if (copy.lane != a.lane || copy.number >= a.copies) return false;
          land(issuer, w, copy);
          return true;
        });
        arrive_after_copies(issuer, a.inst, mbarrier, w, a.lane);
      }
    }
  }
}

const Inst* run_async_arrive(Strand& s, const Inst* i) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (std::uint32_t m = s.mask[w]; m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      const std::uint64_t at = expect_async_arrival(s, i, w, l);
      AsyncCopies& copies = of_warp(s, w);
      copies.arrivals.push_back(
          {.inst = i, .lane = static_cast<std::uint8_t>(l), .mbarrier = at, .copies = copies.issued});
    }
  }
  return i + 1;
}

}  // namespace stitchwork::sim
