#include "simulator/async_copy.h"

#include <cstring>

#include "simulator/sanitizer.h"

namespace stitchwork::sim {
namespace {

AsyncCopies& of_warp(Strand& s, int warp) { return s.block->async[s.gang * kGangWarps + warp]; }

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
  std::memcpy(copy.data.data(), data, i->count);
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
    if (s.block->checks != nullptr) s.block->checks->async_write(s, copy.inst, warp, copy.lane, copy.to);
    std::memcpy(s.block->shared + copy.to, copy.data.data(), copy.inst->count);
    return true;
  });
}

}  // namespace stitchwork::sim
