// What the sanitizers look at in asynchronous and bulk copies (PTX ISA 8.7, 9.7.9.25).
//
// A bulk copy is looked at when it is issued, with what its thread is ordered after then. What it reads and
// writes has times of its own (kBulkLoads ...), which waits at an mbarrier or for a group carry to warps.
// What a load writes counts as written when it lands; until then nobody may touch it.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "simulator/check/apart.h"
#include "simulator/check/sanitizer.h"

namespace stitchwork::sim {
namespace {

/// What bulk copies are aligned to, which is half a sector.
constexpr std::uint32_t kUnit = 16;

/// f(sector, at, bytes, whole): the sectors of a range, cut where the range ends.
template <class F>
void for_sectors(RaceShadow& shadow, std::uint64_t offset, std::uint64_t bytes, F f) {
  for (std::uint64_t at = offset, end = offset + bytes; at < end;) {
    const std::uint64_t next = std::min((at / RaceShadow::kSectorBytes + 1) * RaceShadow::kSectorBytes, end);
    f(shadow.sector(at), at, next - at == RaceShadow::kSectorBytes);
    at = next;
  }
}

}  // namespace

void BlockSanitizer::async_issued(Strand& s, const Inst* i, int warp, int lane, std::uint64_t to) {
  if (!launch_.what.race) return;
  MemoryForm form = launch_.form(i->id);
  form.space = MemoryForm::Space::kShared;
  form.reads = false;
  form.writes = true;
  const Access a{s, i, form, warp, lane, to + block_.shared_base, to, shared_accesses_, this};
  if (has_async_objects()) check_async_objects(a);
  look_at_deferred();
  check_races(a, shared_shadow_, block_.shared);
  under_way_.set(to, form.bytes, true);
  ++copies_under_way_;
}

void BlockSanitizer::async_write(Strand& s, const Inst* i, int warp, int lane, std::uint64_t to) {
  if (launch_.what.race) {
    under_way_.set(to, i->count, false);
    --copies_under_way_;
  }
  MemoryForm form = launch_.form(i->id);
  form.space = MemoryForm::Space::kShared;
  form.reads = false;
  form.writes = true;
  const std::uint64_t address = to + block_.shared_base;
  look_at_lane({s, i, form, warp, lane, address, address, shared_accesses_});
}

bool BlockSanitizer::touches_async_object(std::uint64_t offset, std::uint64_t bytes) const {
  return block_.mbarriers->touched(offset, bytes) != nullptr ||
         (launch_.what.race && (block_.bulk->writing(offset, bytes) != nullptr ||
                                bulk_load_reading(block_, offset, bytes) != nullptr)) ||
         (copies_under_way_ > 0 && under_way_.any(offset, bytes));
}

void BlockSanitizer::check_async_objects(const Access& a) {
  const BlockRun& owner = a.owner->block_;
  const char* verb = a.form.writes ? "writes" : "reads";
  if (const Mbarrier* m = owner.mbarriers->touched(a.offset, a.form.bytes); m != nullptr)
    raise_finding(a.s, a.i, FindingKind::kMbarrier,
                  fmt::format("{} {} bytes at {}, of the mbarrier at offset {}, which only operations on "
                              "mbarriers may touch until mbarrier.inval",
                              verb, a.form.bytes, what_is_at(a), m->offset)
                      .c_str(),
                  a.warp, a.lane);
  if (!launch_.what.race) return;
  if (a.owner->copies_under_way_ > 0 && a.owner->under_way_.any(a.offset, a.form.bytes))
    raise_finding(
        a.s, a.i, FindingKind::kSharedRace,
        fmt::format("{} {} bytes at {}, which the cp.async at PTX line {} is writing, with no wait for it "
                    "in between",
                    a.form.opaque && a.form.writes ? "has a cp.async write" : verb, a.form.bytes,
                    what_is_at(a), a.owner->line_of_copy(a.offset, a.form.bytes))
            .c_str(),
        a.warp, a.lane);
  if (const BulkCopies::Load* c = owner.bulk->writing(a.offset, a.form.bytes); c != nullptr)
    raise_finding(
        a.s, a.i, FindingKind::kSharedRace,
        fmt::format("{} {} bytes at {}, which the {} at PTX line {} is writing, with no wait for its "
                    "mbarrier (at offset {}) in between",
                    verb, a.form.bytes, what_is_at(a), c->name(),
                    launch_.context.program->positions[c->inst->id].line, c->mbarrier)
            .c_str(),
        a.warp, a.lane);
  if (a.form.writes) check_not_being_read(a, "writes", a.form.bytes);
}

void BlockSanitizer::check_not_being_read(const Access& a, const char* writer, std::uint64_t bytes) {
  const BulkCopies::Load* c = bulk_load_reading(a.owner->block_, a.offset, bytes);
  if (c == nullptr) return;
  raise_finding(
      a.s, a.i, FindingKind::kSharedRace,
      fmt::format("{} {} bytes at {}, which the bulk copy at PTX line {} is reading, with no wait for its "
                  "mbarrier in between",
                  writer, bytes, what_is_at(a), launch_.context.program->positions[c->inst->id].line)
          .c_str(),
      a.warp, a.lane);
}

int BlockSanitizer::line_of_copy(std::uint64_t offset, std::uint64_t bytes) const {
  for (std::uint32_t w = 0; w < (block_.threads + 31) / 32; ++w)
    for (const AsyncCopies::Copy& c : block_.async[w].pending)
      if (c.to < offset + bytes && offset < c.to + c.inst->count)
        return launch_.context.program->positions[c.inst->id].line;
  return 0;
}

void BlockSanitizer::check_range(const Access& a, RaceShadow& shadow, std::uint64_t bytes) {
  ++launch_.counts.race_accesses;
  const int warp = block_warp(a.s, a.warp);
  const auto report = [&](std::uint32_t event, int lane, bool wrote, const char* why) {
    raise_finding(
        a.s, a.i, a.owner != nullptr ? FindingKind::kSharedRace : FindingKind::kGlobalRace,
        fmt::format("has a bulk copy {} {} bytes at {}, of which {}{}", a.form.writes ? "write" : "read",
                    bytes, what_is_at(a), launch_.describe(a.accesses[event], lane, wrote, block_.index), why)
            .c_str(),
        a.warp, a.lane);
  };
  // `lane`: that touched it; kNobody: not known to be one.
  const auto check = [&](std::uint32_t event, int lane, int said, bool wrote) {
    if (event == 0) return;
    if (!ordered(a, event, lane)) report(event, said, wrote, ", with nothing that orders it before");
    const AccessEvent& e = a.accesses[event];
    // Ordered is not enough: an ordinary store may reach memory behind the copy's write, too.
    const auto owner =
        a.owner == nullptr ? std::nullopt : std::optional(static_cast<std::uint32_t>(a.owner->block_.index));
    if (wrote && !clocks_.visible_to_bulk(warp, e.block, e.warp, e.time, owner))
      report(event, said, wrote, ", with no fence.proxy.async in between");
  };
  for_sectors(shadow, a.offset, bytes, [&](ShadowSector& sector, std::uint64_t at, bool) {
    if (sector.cells_log2 == 0) {
      for (const auto place : {ShadowSector::kWrite, ShadowSector::kRead, ShadowSector::kOtherRead}) {
        const SectorLanes lanes = sector.lanes[place];
        const bool one = !lanes.are_several() && lanes.bytes_log2() == 5;
        if (place == ShadowSector::kWrite || a.form.writes)
          check(sector.events[place], one ? lanes.lane_of(0) : Toucher::kNobody,
                one ? lanes.lane_of(0) : Toucher::kSeveral, place == ShadowSector::kWrite);
      }
      return;
    }
    const auto cells = shadow.cells(std::as_const(sector));
    const std::uint32_t cell_bytes = RaceShadow::cell_bytes(sector);
    const std::uint64_t first = at % RaceShadow::kSectorBytes;
    const std::uint64_t end =
        std::min<std::uint64_t>(RaceShadow::kSectorBytes, first + a.offset + bytes - at);
    for (std::uint64_t k = first / cell_bytes; k < end / cell_bytes; ++k) {
      const ShadowCell& cell = cells[k];
      check(cell.write.event(), cell.write.lane(), cell.write.lane(), true);
      if (!a.form.writes) continue;
      for (const Toucher& read : cell.reads) check(read.event(), read.lane(), read.lane(), false);
    }
  });
}

void BlockSanitizer::mark_range(const BlockAccesses& accesses, RaceShadow& shadow, std::uint64_t offset,
                                std::uint64_t bytes, std::uint32_t event, bool writes, int issuing_warp) {
  // A reader before, which a later writer would have to be ordered after, too, is kept if there is room.
  const auto keeps = [&](std::uint32_t latest) {
    if (latest == 0) return false;
    const AccessEvent& e = accesses[latest];
    return e.block != block_.index || !clocks_.after(issuing_warp, static_cast<int>(e.warp), e.time);
  };
  for_sectors(shadow, offset, bytes, [&](ShadowSector& sector, std::uint64_t at, bool whole) {
    if (whole && writes) {
      if (sector.cells_log2 != 0) shadow.join(sector);
      sector = {.events = {event, 0, 0}, .lanes = {SectorLanes::several(), {}, {}}, .cells_log2 = 0};
      return;
    }
    if (whole && sector.cells_log2 == 0) {
      constexpr auto kRead = ShadowSector::kRead, kOther = ShadowSector::kOtherRead;
      if (keeps(sector.events[kRead])) {
        sector.events[kOther] = sector.events[kRead];
        sector.lanes[kOther] = sector.lanes[kRead];
      }
      sector.events[kRead] = event;
      sector.lanes[kRead] = SectorLanes::several();
      return;
    }
    const int halves = whole ? 2 : 1;
    for (int half = 0; half < halves; ++half) {
      for (ShadowCell& cell : shadow.cells(sector, at + static_cast<std::uint64_t>(half) * kUnit, kUnit)) {
        const Toucher here(event, Toucher::kSeveral);
        if (writes) {
          cell = {.write = here, .reads = {}};
          continue;
        }
        if (keeps(cell.reads[0].event())) cell.reads[1] = cell.reads[0];
        cell.reads[0] = here;
      }
    }
  });
}

std::uint32_t BlockSanitizer::bulk_event(AccessEvents& events, const Inst* i, int actor,
                                         BlockClocks::Time time, bool strong) const {
  return launch_.add_event(events, {.block = static_cast<std::uint32_t>(block_.index),
                                    .time = time,
                                    .inst = i->id & AccessEvent::kInstMask,
                                    .warp = static_cast<std::uint32_t>(actor) & 63,
                                    .strong = strong});
}

void BlockSanitizer::check_range_initialised(const Access& a, const ByteFlags& written, std::uint64_t bytes) {
  ++launch_.counts.init_accesses;
  if (written.all(a.offset, bytes)) return;
  raise_finding(a.s, a.i, FindingKind::kUninitialisedRead,
                fmt::format("has a bulk copy read {} bytes at {}, of which byte {} was never written", bytes,
                            what_is_at(a), written.leading(a.offset, bytes))
                    .c_str(),
                a.warp, a.lane);
}

namespace {

/// What of a range's ends is no whole unit is left out of the race check: a tensor's edge may cut a row
/// there.
std::pair<std::uint64_t, std::uint64_t> whole_units(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t first = (offset + kUnit - 1) / kUnit * kUnit, end = (offset + bytes) / kUnit * kUnit;
  return {first, end > first ? end - first : 0};
}

MemoryForm form_of_range(bool writes, std::uint64_t bytes) {
  MemoryForm form;
  (writes ? form.writes : form.reads) = true;
  form.bytes = static_cast<std::uint32_t>(bytes);
  return form;
}

}  // namespace

void BlockSanitizer::bulk_load_source(Strand& s, const Inst* i, int warp, int lane,
                                      BlockChecks& checks_of_owner, std::span<const GlobalRange> from) {
  BlockSanitizer& owner = of(checks_of_owner);
  for (const GlobalRange& range : from) {
    Allocation& allocation = *launch_.context.memory->impl().find(range.address);
    const MemoryForm all = form_of_range(false, range.bytes);
    const std::uint64_t offset = range.address & kAllocationOffsetMask;
    if (launch_.what.init && !allocation.written.empty())
      check_range_initialised({s, i, all, warp, lane, range.address, offset, global_accesses_},
                              allocation.written, range.bytes);
    const auto [first, bytes] = whole_units(offset, range.bytes);
    if (!launch_.what.race || bytes == 0) continue;
    look_at_deferred();
    copies_in_bulk_ = true;
    const MemoryForm reads = form_of_range(false, bytes);
    RaceShadow& global = launch_.shadow(range.address >> kAllocationShift, allocation.bytes.size());
    check_range({s, i, reads, warp, lane, range.address + (first - offset), first, global_accesses_}, global,
                bytes);
    mark_range(global_accesses_, global, first, bytes,
               owner.bulk_event(launch_.global_events, i, kBulkLoads, owner.clocks_.next_bulk(kBulkLoads)),
               false, block_warp(s, warp));
  }
}

void BlockSanitizer::bulk_exchange_source(Strand& s, const Inst* i, int warp, int lane, std::uint64_t from,
                                          std::uint32_t bytes) {
  const MemoryForm reads = form_of_range(false, bytes);
  const Access source{s, i, reads, warp, lane, from, from, shared_accesses_, this};
  if (launch_.what.init) check_range_initialised(source, shared_written_, bytes);
  if (!launch_.what.race) return;
  look_at_deferred();
  copies_in_bulk_ = true;
  check_not_being_written(source, "has a bulk copy read", bytes);
  check_range(source, shared_shadow_, bytes);
}

void BlockSanitizer::bulk_load_target(Strand& s, const Inst* i, int warp, int lane,
                                      BlockChecks& checks_of_owner, const BulkCopies::Load& copy) {
  BlockSanitizer& owner = of(checks_of_owner);
  const MemoryForm writes = form_of_range(true, copy.bytes);
  const Access target{s, i, writes, warp, lane, copy.to, copy.to, accesses_to(owner), &owner};
  if (launch_.what.init && copy.reduction && !copy.of_registers)
    check_range_initialised(target, owner.shared_written_, copy.bytes);
  if (!launch_.what.race) return;
  look_at_deferred();
  owner.look_at_deferred();
  owner.copies_in_bulk_ = copies_in_bulk_ = true;
  if (&owner != this &&
      !clocks_.knows_of(block_warp(s, warp), static_cast<std::uint32_t>(owner.block_.index)))
    raise_finding(
        s, i, FindingKind::kBlockLifetime,
        fmt::format("copies {} bytes to shared memory of block rank {}, which may not have started: "
                    "no cluster barrier came before",
                    copy.bytes, owner.block_.cluster_rank)
            .c_str(),
        warp, lane);
  if (const BulkCopies::Load* c = owner.block_.bulk->writing(copy.to, copy.bytes);
      c != nullptr && !(c->reduction && copy.reduction))
    raise_finding(s, i, FindingKind::kSharedRace,
                  fmt::format("has a{} {} write {} bytes at {}, which the {} at PTX line {} is writing",
                              copy.of_registers ? "n" : "", copy.name(), copy.bytes, what_is_at(target),
                              c->name(), launch_.context.program->positions[c->inst->id].line)
                      .c_str(),
                  warp, lane);
  check_not_being_read(
      target, copy.of_registers ? "has an asynchronous store write" : "has a bulk copy write", copy.bytes);
  if (copy.source && &owner == this && copy.to < *copy.source + copy.bytes &&
      *copy.source < copy.to + copy.bytes)
    raise_finding(s, i, FindingKind::kSharedRace,
                  fmt::format("copies {} bytes at shared memory offset {} onto themselves, to offset {}",
                              copy.bytes, *copy.source, copy.to)
                      .c_str(),
                  warp, lane);
  if (copy.of_registers)
    check_store(target, copy.bytes);
  else
    check_range(target, owner.shared_shadow_, copy.bytes);
}

void BlockSanitizer::check_store(const Access& a, std::uint64_t bytes) {
  ++launch_.counts.race_accesses;
  const auto check = [&](Toucher earlier, bool wrote) {
    if (!earlier || ordered(a, earlier)) return;
    raise_finding(
        a.s, a.i, FindingKind::kSharedRace,
        fmt::format("has an asynchronous store write {} bytes at {}, of which {}, with nothing that "
                    "orders it before",
                    bytes, what_is_at(a),
                    launch_.describe(a.accesses[earlier.event()], earlier.lane(), wrote, block_.index))
            .c_str(),
        a.warp, a.lane);
  };
  RaceShadow& shadow = a.owner->shared_shadow_;
  for (const ShadowCell& cell :
       shadow.cells(shadow.sector(a.offset), a.offset, static_cast<std::uint32_t>(bytes))) {
    check(cell.write, true);
    for (const Toucher read : cell.reads) check(read, false);
  }
}

void BlockSanitizer::bulk_landed(const BulkCopies::Load& c) {
  // A reduction leaves memory as written as it was.
  if (launch_.what.init && !c.reduction) shared_written_.set(c.to, c.bytes, true);
  if (!launch_.what.race) return;
  look_at_deferred();
  const BlockClocks::Time time = clocks_.next_bulk(kBulkLoads);
  const std::uint32_t event = bulk_event(shared_events_, c.inst, kBulkLoads, time, c.reduction.has_value());
  if (c.of_registers) {
    for (ShadowCell& cell : shared_shadow_.cells(shared_shadow_.sector(c.to), c.to, c.bytes))
      cell = {.write = Toucher(event, Toucher::kNobody), .reads = {}};
  } else {
    mark_range(shared_accesses_, shared_shadow_, c.to, c.bytes, event, true, 0);
  }
  // Who is ordered after what it wrote here is after what it read there, too.
  if (c.source) {
    BlockSanitizer& issuer = of(*c.issuer->checks);
    issuer.look_at_deferred();
    issuer.mark_range(issuer.shared_accesses_, issuer.shared_shadow_, *c.source, c.bytes,
                      bulk_event(issuer.shared_events_, c.inst, kBulkLoads, time), false, c.warp);
  }
  std::uint32_t& seen = mbarriers_.at(c.mbarrier).arriving.seen[kBulkLoads];
  seen = std::max(seen, time.clock);
}

void BlockSanitizer::check_not_being_written(const Access& a, const char* reader, std::uint64_t bytes) {
  const BulkCopies::Load* c = block_.bulk->writing(a.offset, bytes);
  if (c == nullptr) return;
  raise_finding(
      a.s, a.i, FindingKind::kSharedRace,
      fmt::format("{} {} bytes at {}, which the bulk copy at PTX line {} is "
                  "writing, with no wait for its mbarrier in between",
                  reader, bytes, what_is_at(a), launch_.context.program->positions[c->inst->id].line)
          .c_str(),
      a.warp, a.lane);
}

std::uint32_t BlockSanitizer::bulk_store(Strand& s, const Inst* i, int warp, int lane, std::uint64_t from,
                                         std::uint32_t bytes, std::span<const GlobalRange> to) {
  const MemoryForm reads = form_of_range(false, bytes);
  const Access source{s, i, reads, warp, lane, from, from, shared_accesses_, this};
  if (launch_.what.init) check_range_initialised(source, shared_written_, bytes);
  BlockClocks::Time time;
  const int of_block = block_warp(s, warp);
  if (launch_.what.race) {
    look_at_deferred();
    copies_in_bulk_ = true;
    check_not_being_written(source, "has a bulk copy read", bytes);
    check_range(source, shared_shadow_, bytes);
    time = clocks_.next_bulk(kBulkReads);
    clocks_.next_bulk(kBulkWrites);  // in step: a store has one time
    mark_range(shared_accesses_, shared_shadow_, from, bytes, bulk_event(shared_events_, i, kBulkReads, time),
               false, of_block);
  }
  for (const GlobalRange& range : to) {
    Allocation& allocation = *launch_.context.memory->impl().find(range.address);
    const std::uint64_t offset = range.address & kAllocationOffsetMask;
    if (launch_.undo != nullptr) launch_.undo->keep(range.address >> kAllocationShift, offset, range.bytes);
    if (launch_.what.init && !allocation.written.empty()) {
      const MemoryForm all = form_of_range(false, range.bytes);
      const Access target{s, i, all, warp, lane, range.address, offset, global_accesses_};
      if (i->aux & kStrong) check_range_initialised(target, allocation.written, range.bytes);
      allocation.written.set(offset, range.bytes, true);
    }
    const auto [first, whole] = whole_units(offset, range.bytes);
    if (!launch_.what.race || whole == 0) continue;
    const MemoryForm writes = form_of_range(true, whole);
    RaceShadow& global = launch_.shadow(range.address >> kAllocationShift, allocation.bytes.size());
    check_range({s, i, writes, warp, lane, range.address + (first - offset), first, global_accesses_}, global,
                whole);
    mark_range(global_accesses_, global, first, whole,
               bulk_event(launch_.global_events, i, kBulkWrites, time, (i->aux & kStrong) != 0), true,
               of_block);
  }
  return time.clock;
}

void BlockSanitizer::bulk_store_waited(const BulkCopies::Store& c, bool read) {
  if (!launch_.what.race) return;
  clocks_.bulk_waited(c.warp, kBulkReads, c.time);
  if (!read) clocks_.bulk_waited(c.warp, kBulkWrites, c.time);
}

}  // namespace stitchwork::sim
