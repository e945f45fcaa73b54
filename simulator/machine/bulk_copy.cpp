#include "simulator/machine/bulk_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "simulator/machine/access_log.h"
#include "simulator/machine/cluster.h"
#include "simulator/machine/mbarrier.h"

namespace stitchwork::sim {
namespace {

/// Of both addresses and of the size (9.7.9.25.4.1).
constexpr unsigned kUnit = 16;

template <class T>
T lane_value(const Strand& s, u32 slot, int w, int l) {
  return load<T>(s.regs + slot + (w * 32 + l) * int(sizeof(T)));
}

/// A lane's address of shared memory, which may be in a register of 32 bits.
u64 shared_address(const Strand& s, const Inst* i, int operand, std::uint16_t narrow, int w, int l) {
  return i->aux & narrow ? lane_value<u32>(s, i->o[operand], w, l) : lane_value<u64>(s, i->o[operand], w, l);
}

u32 size_of(Strand& s, const Inst* i, int w, int l) {
  const u32 bytes = lane_value<u32>(s, i->o[2], w, l);
  if (bytes % kUnit != 0)
    raise_finding(s, i, FindingKind::kMisaligned,
                  fmt::format("copies {} bytes, which is no multiple of {}", bytes, kUnit).c_str(), w, l);
  return bytes;
}

/// The host bytes of a range of global memory.
std::byte* global_bytes(Strand& s, const Inst* i, u64 address, u32 bytes, bool write, int w, int l) {
  AddressCache& cache = s.block->caches[i->id];
  if (address % kUnit != 0) raise_misaligned(s, i, address, kUnit, w, l);
  if (address < cache.lo || address > cache.hi || bytes > cache.hi - address)
    find_allocation(s, i, cache, address, bytes, write, w, l);
  return cache.host + (address - cache.lo);
}

void move(BlockRun& b, BulkCopies::Store& c) {
  if (c.moved) return;
  c.moved = true;
  if (c.box)
    c.box->store(b.shared + c.from);
  else
    std::memcpy(c.to, b.shared + c.from, c.bytes);
  ++b.progress;
}

}  // namespace

void BulkCopies::Load::land(std::byte* shared) const {
  if (reduction) {
    const std::byte* const operands = of_registers ? values.data() : from;
    for (u32 at = 0; at < bytes; at += element_bytes) {
      u64 value = 0;
      bool changed = false;
      std::memcpy(&value, operands + at, element_bytes);
      apply_atomic(*reduction, shared + at, value, 0, changed);
    }
  } else if (of_registers) {
    std::memcpy(shared, values.data(), bytes);
  } else if (box) {
    box->load(shared);
  } else if (bytes != 0) {
    std::memmove(shared, from, bytes);
  }
}

void check_no_mbarrier(Strand& s, const Inst* i, const SharedPlace& at, u32 bytes, int w, int l) {
  if (const Mbarrier* m = at.block->mbarriers->touched(at.offset, bytes); m != nullptr)
    raise_finding(s, i, FindingKind::kMbarrier,
                  fmt::format("copies {} bytes at shared memory offset {}, over the mbarrier at offset {}",
                              bytes, at.offset, m->offset)
                      .c_str(),
                  w, l);
}

void queue_bulk_load(Strand& s, const Inst* i, const SharedPlace& at, const SharedPlace& bar,
                     BulkCopies::Load load, int w, int l) {
  if (bar.block != at.block)
    raise_finding(s, i, FindingKind::kMbarrier,
                  "completes an mbarrier that is not in the shared memory it copies to", w, l);
  find_mbarrier(s, i, bar, w, l);
  load.inst = i;
  load.issuer = s.block;
  load.warp = s.gang * kGangWarps + w;
  load.lane = l;
  load.to = at.offset;
  load.mbarrier = bar.offset;
  if (load.bytes != 0) {
    check_no_mbarrier(s, i, at, load.bytes, w, l);
    if (s.block->checks != nullptr) s.block->checks->bulk_load_target(s, i, w, l, *at.block->checks, load);
  }
  if (load.source) ++s.block->bulk->reads_under_way;
  at.block->bulk->loads.push_back(std::move(load));
  ++s.block->progress;
}

u32 multicast_ranks(Strand& s, const Inst* i, u32 mask, int w, int l) {
  const u64 blocks = s.block->cluster == nullptr ? 1 : s.block->cluster->blocks.size();
  mask &= 0xffff;
  if (mask >> blocks != 0 || mask == 0)
    raise_finding(
        s, i, FindingKind::kOutOfBounds,
        fmt::format("copies to the blocks of mask {:#06x} of a cluster of {} blocks", mask, blocks).c_str(),
        w, l);
  return mask;
}

u32 open_bulk_group(BlockRun& b, int warp, int lane) {
  b.bulk->committed.resize((b.threads + 31) / 32 * 32);
  return b.bulk->committed[static_cast<std::size_t>(warp * 32 + lane)];
}

const Inst* run_bulk_load(Strand& s, const Inst* i) {
  BlockRun& b = *s.block;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (u32 mask = s.mask[w]; mask != 0; mask &= mask - 1) {
      const int l = __builtin_ctz(mask);
      const u32 bytes = size_of(s, i, w, l);
      const bool remote = i->flags & kBulkRemote;
      const u64 to = shared_address(s, i, 0, kBulkNarrowShared, w, l);
      const u64 from = lane_value<u64>(s, i->o[1], w, l);
      const SharedPlace at = shared_place(s, i, to, bytes, kUnit, remote, true, w, l);
      const SharedPlace bar = shared_place(s, i, shared_address(s, i, 3, kBulkNarrowMbarrier, w, l),
                                           Mbarrier::kBytes, Mbarrier::kBytes, remote, true, w, l);
      BulkCopies::Load c{.bytes = bytes};
      ++b.hot->bulk_copies;
      b.hot->accesses += 2;
      if (bytes != 0) {
        c.from = global_bytes(s, i, from, bytes, false, w, l);
        if (b.checks != nullptr) {
          const GlobalRange range{from, bytes};
          b.checks->bulk_load_source(s, i, w, l, *at.block->checks, {&range, 1});
        }
        const u64 sectors = log_range(b, Sectors::of(from, bytes), 0, false).sectors;
        b.hot->gld_transactions += sectors;
        b.hot->bulk_sectors += sectors;
        b.hot->bulk_shared_stores += bulk_wavefronts(bytes);
      }
      ++b.hot->gld_requests;
      ++b.hot->bulk_loads;
      b.hot->gld_bytes += bytes;
      if (!(i->flags & kBulkMulticast)) {
        queue_bulk_load(s, i, at, bar, c, w, l);
        continue;
      }
      for (u32 ranks = multicast_ranks(s, i, lane_value<u32>(s, i->o[4], w, l), w, l); ranks != 0;
           ranks &= ranks - 1) {
        BlockRun& to = b.cluster == nullptr ? b : block_of_rank(b, u64(__builtin_ctz(ranks)));
        queue_bulk_load(s, i, {&to, at.offset}, {&to, bar.offset}, c, w, l);
      }
    }
  }
  return i + 1;
}

const Inst* run_bulk_exchange(Strand& s, const Inst* i) {
  BlockRun& b = *s.block;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (u32 mask = s.mask[w]; mask != 0; mask &= mask - 1) {
      const int l = __builtin_ctz(mask);
      const u32 bytes = size_of(s, i, w, l);
      const u64 to = shared_address(s, i, 0, kBulkNarrowShared, w, l);
      const SharedPlace at = shared_place(s, i, to, bytes, kUnit, true, true, w, l);
      const SharedPlace source = shared_place(s, i, shared_address(s, i, 1, kBulkNarrowSource, w, l), bytes,
                                              kUnit, false, false, w, l);
      const SharedPlace bar = shared_place(s, i, shared_address(s, i, 3, kBulkNarrowMbarrier, w, l),
                                           Mbarrier::kBytes, Mbarrier::kBytes, true, true, w, l);
      BulkCopies::Load c{.from = b.shared + source.offset, .bytes = bytes, .source = source.offset};
      if (i->imm != 0) {
        c.reduction = AtomicOp(i->imm - 1);
        c.element_bytes = i->count;
      }
      ++b.hot->bulk_copies;
      b.hot->accesses += 2;
      if (bytes != 0) {
        check_no_mbarrier(s, i, source, bytes, w, l);
        b.hot->bulk_shared_loads += bulk_wavefronts(bytes);
        if (at.block == &b) {
          b.hot->bulk_shared_stores += bulk_wavefronts(bytes);
        } else {
          const Sectors remote = Sectors::of(at.offset, bytes);
          ++b.hot->remote_requests;
          b.hot->remote_sectors += remote.last - remote.first + 1;
        }
        if (b.checks != nullptr) b.checks->bulk_exchange_source(s, i, w, l, source.offset, bytes);
      }
      queue_bulk_load(s, i, at, bar, c, w, l);
    }
  }
  return i + 1;
}

const BulkCopies::Load* bulk_load_reading(const BlockRun& b, u64 offset, u64 bytes) {
  if (b.bulk->reads_under_way == 0) return nullptr;
  const auto of_block = [&](const BlockRun& target) -> const BulkCopies::Load* {
    for (const BulkCopies::Load& c : target.bulk->loads)
      if (c.source && c.issuer == &b && offset < *c.source + c.bytes && *c.source < offset + bytes) return &c;
    return nullptr;
  };
  if (b.cluster == nullptr) return of_block(b);
  for (const Block* target : b.cluster->blocks)
    if (const BulkCopies::Load* c = of_block(*target); c != nullptr) return c;
  return nullptr;
}

void land_bulk_loads(Strand& s, BlockRun& owner, std::uint64_t offset) {
  std::vector<BulkCopies::Load>& loads = owner.bulk->loads;
  u64 under_way = 0, barriers = 0, landed = 0;
  for (std::size_t k = 0; k < loads.size(); ++k) {
    if (loads[k].of_registers || loads[k].source) continue;  // no memory of the device is waited for
    under_way += loads[k].bytes;
    landed += loads[k].mbarrier == offset;
    barriers += std::none_of(loads.begin(), loads.begin() + static_cast<std::ptrdiff_t>(k),
                             [&](const BulkCopies::Load& c) {
                               return !c.of_registers && !c.source && c.mbarrier == loads[k].mbarrier;
                             });
  }
  if (landed != 0) {
    // Those that other barriers wait for hide their share of the round trip.
    ++s.block->hot->bulk_waits;
    s.block->hot->bulk_bytes_in_flight += under_way;
    s.block->hot->bulk_trips += kBulkTripParts / barriers;
  }
  Mbarrier& m = *owner.mbarriers->find(offset);
  std::erase_if(loads, [&](const BulkCopies::Load& c) {
    if (c.mbarrier != offset) return false;
    c.land(owner.shared + c.to);
    if (c.source) --c.issuer->bulk->reads_under_way;
    if (owner.checks != nullptr) owner.checks->bulk_landed(c);
    complete_tx(s, c.inst, owner, m, c.bytes, c.warp % kGangWarps, c.lane);
    return true;
  });
}

const Inst* run_bulk_store(Strand& s, const Inst* i) {
  BlockRun& b = *s.block;
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (u32 mask = s.mask[w]; mask != 0; mask &= mask - 1) {
      const int l = __builtin_ctz(mask);
      const u32 bytes = size_of(s, i, w, l);
      const u64 to = lane_value<u64>(s, i->o[0], w, l);
      const SharedPlace at = shared_place(s, i, shared_address(s, i, 1, kBulkNarrowShared, w, l), bytes,
                                          kUnit, false, false, w, l);
      ++b.hot->bulk_copies;
      ++b.hot->gst_requests;
      b.hot->gst_bytes += bytes;
      b.hot->accesses += 2;
      if (bytes == 0) continue;
      check_no_mbarrier(s, i, at, bytes, w, l);
      BulkCopies::Store c{.inst = i,
                          .warp = s.gang * kGangWarps + w,
                          .lane = l,
                          .from = at.offset,
                          .to = global_bytes(s, i, to, bytes, true, w, l),
                          .bytes = bytes};
      if (i->flags != 0) {
        c.box = std::make_shared<TensorBox>(TensorBox{
            .parts = {{0, bytes, c.to}}, .element_bytes = i->count, .reduction = AtomicOp(i->flags - 1)});
      }
      c.group = open_bulk_group(b, c.warp, l);
      if (b.checks != nullptr) {
        const GlobalRange range{to, bytes};
        c.time = b.checks->bulk_store(s, i, w, l, at.offset, bytes, {&range, 1});
      }
      const u64 sectors = log_range(b, Sectors::of(to, bytes), 1, false).sectors;
      b.hot->gst_transactions += sectors;
      b.hot->bulk_sectors += sectors;
      b.hot->bulk_shared_loads += bulk_wavefronts(bytes);
      b.bulk->stores.push_back(c);
      ++b.progress;
    }
  }
  return i + 1;
}

const Inst* commit_bulk_stores(Strand& s, const Inst* i) {
  BulkCopies& bulk = *s.block->bulk;
  if (bulk.committed.empty()) return i + 1;  // an empty group is complete
  for (int w = s.first_warp; w < s.last_warp; ++w)
    for (u32 mask = s.mask[w]; mask != 0; mask &= mask - 1)
      ++bulk.committed[static_cast<std::size_t>((s.gang * kGangWarps + w) * 32 + __builtin_ctz(mask))];
  return i + 1;
}

const Inst* wait_for_bulk_stores(Strand& s, const Inst* i) {
  BlockRun& b = *s.block;
  if (b.bulk->stores.empty()) return i + 1;
  const bool read = i->flags != 0;
  bool wrote = false;
  std::erase_if(b.bulk->stores, [&](BulkCopies::Store& c) {
    const int w = c.warp - s.gang * kGangWarps;
    if (w < s.first_warp || w >= s.last_warp || !(s.mask[w] >> c.lane & 1)) return false;
    const u32 committed = b.bulk->committed[static_cast<std::size_t>(c.warp * 32 + c.lane)];
    if (u64{c.group} + u64(i->imm) >= committed) return false;
    move(b, c);
    if (b.checks != nullptr) b.checks->bulk_store_waited(c, read);
    wrote |= !read;
    return !read;
  });
  if (wrote) b.hot->bulk_trips += kBulkTripParts;
  return i + 1;
}

void check_bulk_copies_ended(BlockRun& b) {
  const auto report = [&](const BlockRun& issuer, const Inst* i, int warp, int lane,
                          const std::string& message) {
    Strand of_gang;
    of_gang.gang = warp / kGangWarps;
    throw FindingError{
        make_finding(issuer, of_gang, i, FindingKind::kBlockLifetime, message, warp % kGangWarps, lane),
        b.index};
  };
  for (const BulkCopies::Load& c : b.bulk->loads)
    report(*c.issuer, c.inst, c.warp, c.lane,
           fmt::format("copies {} bytes to shared memory offset {} of a block that ends without waiting for "
                       "them at the mbarrier at offset {}",
                       c.bytes, c.to, c.mbarrier));
  if (const BulkCopies::Load* c = bulk_load_reading(b, 0, b.shared_bytes); c != nullptr)
    report(b, c->inst, c->warp, c->lane,
           fmt::format("copies {} bytes from shared memory offset {}, and the block ends before any thread "
                       "has waited for them at their mbarrier",
                       c->bytes, *c->source));
  for (const BulkCopies::Store& c : b.bulk->stores)
    if (!c.moved)
      report(b, c.inst, c.warp, c.lane,
             fmt::format("copies {} bytes at shared memory offset {}, and the block ends without waiting "
                         "until they are read (cp.async.bulk.wait_group.read)",
                         c.bytes, c.from));
}

}  // namespace stitchwork::sim
