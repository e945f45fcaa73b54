// What the sanitizers look at in one block: its barriers and memory accesses.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "simulator/check/apart.h"
#include "simulator/check/sanitizer.h"
#include "simulator/machine/cluster.h"
#include "simulator/machine/matrix.h"

namespace stitchwork::sim {

void BlockAccesses::start(std::size_t places) {
  latest_.assign(places, 0);
  own_first_ = own_end_ = static_cast<std::uint32_t>(std::max<std::size_t>(all_->size(), 1));
  settled_count_ = 0;
}

void BlockAccesses::settle() {
  settled_first_ = own_first_;
  settled_count_ = own_end_ - own_first_;
}

BlockSanitizer::BlockSanitizer(Sanitizer& launch, const BlockRun& block)
    : launch_(launch),
      block_(block),
      clocks_(launch.clocks, static_cast<std::uint32_t>(block.index),
              static_cast<int>((block.threads + 31) / 32)),
      shared_shadow_(launch.what.race ? block.shared_bytes : 0),
      global_accesses_(launch.global_events),
      shared_accesses_(shared_events_) {
  start();
}

void BlockSanitizer::start() {
  const std::size_t warps = (block_.threads + 31) / 32;
  clocks_ = BlockClocks(launch_.clocks, static_cast<std::uint32_t>(block_.index), static_cast<int>(warps));
  if (launch_.what.race) {
    shared_shadow_.clear();
    shared_events_.clear();
    const std::size_t places = warps * launch_.memory_instructions();
    global_accesses_.start(places);
    shared_accesses_.start(places);
    remote_accesses_.clear();
    touched_by_.clear();
    deferred_.clear();
    deferring_ = block_.cluster == nullptr;
    copies_in_bulk_ = false;
    under_way_.assign(block_.shared_bytes, false);
    copies_under_way_ = 0;
    mbarriers_.clear();
  }
  cluster_arriving_ = cluster_arrived_ = {};
  product_registers_.clear();
  product_fences_.assign(warps, 0);
  if (!launch_.what.init) return;
  shared_written_.assign(block_.shared_bytes, false);
  if (launch_.original_program().uses_reserved_shared)
    shared_written_.set(launch_.context.reserved_shared_offset, kReservedSharedBytes, true);
  local_written_.assign(warps * 32 * block_.local_bytes, false);
  registers_set_.assign(warps * launch_.program().tracked_names.size(), 0);
  bits_set_.clear();
}

void BlockSanitizer::barrier_arrive(const Strand& s, int id) {
  for (int w = s.first_warp; w < s.last_warp; ++w)
    if (s.alive[w] != 0) clocks_.arrive(block_warp(s, w), id);
}
void BlockSanitizer::barrier_complete(const std::vector<Strand>& strands, int id, const Strand* last) {
  for (const Strand& s : strands)
    for (int w = s.first_warp; w < s.last_warp; ++w)
      if (s.alive[w] == 0) clocks_.arrive(block_warp(s, w), id);
  const auto passes = [&](const Strand& s) {
    return &s == last || (s.state == StrandState::kBarrier && s.barrier_id == id);
  };
  bool everyone = true;
  for (const Strand& s : strands)
    for (int w = s.first_warp; w < s.last_warp; ++w) everyone &= s.alive[w] == 0 || passes(s);
  if (!everyone) look_at_deferred();  // as their warps' clocks stand
  for (const Strand& s : strands)
    for (int w = s.first_warp; w < s.last_warp; ++w)
      if (s.alive[w] != 0 && passes(s)) clocks_.pass(block_warp(s, w), id);
  clocks_.reset(id);
  if (everyone) settle();
}

void BlockSanitizer::settle() {
  global_accesses_.settle();
  shared_accesses_.settle();
  for (auto& remote : remote_accesses_)
    if (remote) remote->settle();
  deferred_.clear();
  deferring_ = launch_.what.race && block_.cluster == nullptr && !copies_in_bulk_;
}
void BlockSanitizer::fence(const Strand& s, const Inst* i) {
  look_at_deferred();
  for (int w = s.first_warp; w < s.last_warp; ++w)
    if (s.mask[w] != 0)
      clocks_.fence(block_warp(s, w), static_cast<Scope>(i->flags & kFenceScope),
                    (i->flags & kFenceAcquires) != 0, (i->flags & kFenceReleases) != 0);
}
void BlockSanitizer::warp_barrier(const Strand& s) {
  for (int w = s.first_warp; w < s.last_warp; ++w)
    if (s.mask[w] != 0) clocks_.warp_barrier(block_warp(s, w));
}

void BlockSanitizer::look(Strand& s, const Inst* i) {
  unset_elements_.clear();
  if (const ptx::TrackedInst* t = launch_.tracked(i->id)) look_at_registers(s, i, *t);
  const MemoryForm& form = launch_.form(i->id);
  if (form.space != MemoryForm::Space::kNone && (launch_.what.race || launch_.what.init))
    look_at_memory(s, i, form);
  if (const ptx::TrackedInst* t = launch_.product_registers(i->id);
      t != nullptr && !launch_.is_product(i->id))
    look_at_product_registers(s, i, *t);
}

void BlockSanitizer::look_at_fragment(Strand& s, const Inst* i, const MemoryForm& form) {
  const WmmaMatrix matrix = WmmaMatrix::of(i->imm);
  const int elements = matrix.rows * matrix.columns;
  const int slots = i->count * std::max(1, 4 / matrix.element_bytes());
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    if (s.mask[w] == 0) continue;
    std::uint64_t base = 0;
    std::uint32_t stride = 0;
    std::memcpy(&base, s.regs + i->o[0] + w * (i->aux & kAddress32 ? 128 : 256), i->aux & kAddress32 ? 4 : 8);
    std::memcpy(&stride, s.regs + i->o[1] + w * 128, 4);
    for (int e = 0; e < std::min(elements, 32 * slots); ++e) {
      const std::uint64_t address = base + matrix.offset(e, stride);
      look_at_lane({s, i, form, w, e / slots, address, offset_of(address), global_accesses_});
    }
  }
}

void BlockSanitizer::look_at_memory(Strand& s, const Inst* i, const MemoryForm& form) {
  if (form.fragment) return look_at_fragment(s, i, form);
  if (form.address != 4) return look_at_async_copy(s, i, form);
  const bool narrow = (i->aux & kAddress32) != 0;
  const int warp_bytes = 32 * (narrow ? 4 : 8);
  const std::byte* const registers = s.regs + i->o[4];
  std::array<LaneAddresses::Shape, kGangWarps> shapes;
  if (const AccessMemo& memo = s.memos[i->flags & (kMemos - 1)];
      form.keeps_memos && (i->flags & kMemoFollows) && memo.known) {
    using Shape = LaneAddresses::Shape;
    for (int w = s.first_warp; w < s.last_warp; ++w) {
      const bool* const run = memo.is_run + 2 * w;
      shapes[static_cast<std::size_t>(w - s.first_warp)] = run[0] != run[1] ? Shape::kUneven
                                                           : run[0]         ? Shape::kRuns
                                                                            : Shape::kSame;
    }
  } else {
    read_shapes(registers + s.first_warp * warp_bytes, narrow, form.bytes, s.last_warp - s.first_warp,
                shapes.data());
  }
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const std::uint32_t lanes = s.mask[w] & form.lanes;
    if (lanes == 0) continue;
    const LaneAddresses addresses{registers + w * warp_bytes, narrow, i->imm,
                                  shapes[static_cast<std::size_t>(w - s.first_warp)]};
    if (look_at_warp(s, i, form, w, lanes, addresses)) continue;
    for (std::uint32_t m = lanes; m != 0; m &= m - 1) {
      const int lane = __builtin_ctz(m);
      const std::uint64_t address = addresses[lane];
      look_at_lane({s, i, form, w, lane, address, offset_of(address), global_accesses_});
    }
  }
}

/// cp.async: how much is read may differ by lane.
void BlockSanitizer::look_at_async_copy(Strand& s, const Inst* i, const MemoryForm& form) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    for (std::uint32_t m = s.mask[w] & form.lanes; m != 0; m &= m - 1) {
      const int lane = __builtin_ctz(m);
      MemoryForm now = form;
      if (i->o[2] != ~0u) {
        std::uint32_t size = 0;
        std::memcpy(&size, s.regs + i->o[2] + (w * 32 + lane) * 4, 4);
        now.bytes = std::min(size, form.bytes);
      }
      std::uint32_t skip = 0;
      if (i->o[3] != ~0u) std::memcpy(&skip, s.regs + i->o[3] + w * 4, 4);
      if (now.bytes == 0 || (skip >> lane & 1)) continue;
      std::uint64_t address = 0;
      std::memcpy(&address, s.regs + i->o[form.address] + (w * 32 + lane) * 8, 8);
      look_at_lane({s, i, now, w, lane, address, offset_of(address), global_accesses_});
    }
  }
}

/// Accesses outside of what there is, or misaligned, are left to the handler, which reports them.
void BlockSanitizer::look_at_lane(const Access& a) {
  using Space = MemoryForm::Space;
  const std::uint64_t window = a.address >> kAllocationShift;
  const bool generic = a.form.space == Space::kGeneric;
  const bool shared = a.form.space == Space::kShared || a.form.space == Space::kCluster ||
                      (generic && window == kSharedWindow);
  const bool local = a.form.space == Space::kLocal || (generic && window == kLocalWindow);
  if (a.address % std::bit_ceil(a.form.bytes) != 0) return;
  const Sanitizers& what = launch_.what;
  if (local) {
    if (!what.init || a.offset + a.form.bytes > block_.local_bytes) return;
    const auto thread = static_cast<std::uint64_t>(block_warp(a.s, a.warp) * 32 + a.lane);
    Access in_block = a;
    in_block.offset += thread * block_.local_bytes;
    check_initialised(in_block, local_written_, fmt::format("local memory offset {}", a.offset));
  } else if (shared) {
    std::uint64_t base = 0;
    BlockSanitizer* const owner = owner_of(a.offset, &base);
    const std::uint64_t offset = a.offset - base;
    if (owner == nullptr || (owner != this && a.form.space == Space::kShared) ||
        offset + a.form.bytes > owner->block_.shared_bytes)
      return;
    const Access there{a.s, a.i, a.form, a.warp, a.lane, a.address, offset, accesses_to(*owner), owner};
    if (owner->has_async_objects()) check_async_objects(there);
    if (what.init) check_initialised(there, owner->shared_written_, "");
    if (!what.race) return;
    look_at_deferred();
    if (owner != this || a.strong()) check_lifetime(there);
    if (a.strong()) synchronise(there);
    check_races(there, owner->shared_shadow_, owner->block_.shared);
  } else {
    Allocation* allocation = launch_.context.memory->impl().find(a.address);
    if (allocation == nullptr || a.offset + a.form.bytes > allocation->bytes.size()) return;
    if (a.form.writes && launch_.undo != nullptr) launch_.undo->keep(window, a.offset, a.form.bytes);
    if (what.init && !allocation->written.empty()) check_initialised(a, allocation->written, "");
    if (!what.race || (a.i->aux & kUncounted)) return;  // constant memory is never written
    if (a.strong()) synchronise(a);
    check_races(a, launch_.shadow(window, allocation->bytes.size()), allocation->bytes.data());
  }
}

std::string BlockSanitizer::what_is_at(const Access& a) const {
  if (a.owner == this) return fmt::format("shared memory offset {}", a.offset);
  if (a.owner != nullptr)
    return fmt::format("shared memory offset {} of block rank {}", a.offset, a.owner->block_.cluster_rank);
  return fmt::format("{}+{}", launch_.context.memory->impl().find(a.address)->name, a.offset);
}

/// A strong read may take a word of which only a part is anybody's business (a 16-bit atomic by compare and
/// swap).
void BlockSanitizer::check_initialised(const Access& a, ByteFlags& written, const std::string& where) {
  if (a.form.reads) {
    ++launch_.counts.init_accesses;
    if (!written.all(a.offset, a.form.bytes) && !(a.strong() && written.any(a.offset, a.form.bytes)) &&
        !leaves_to_use(a, written)) {
      raise_finding(
          a.s, a.i, FindingKind::kUninitialisedRead,
          fmt::format("reads {} bytes at {}, of which byte {} was never written", a.form.bytes,
                      where.empty() ? what_is_at(a) : where, written.leading(a.offset, a.form.bytes))
              .c_str(),
          a.warp, a.lane);
    }
  }
  if (!a.form.writes) return;
  written.set(a.offset, a.form.bytes, true);
  if (!unset_elements_.empty()) keep_unset_elements(a, written);
}

void BlockSanitizer::synchronise(const Access& a) {
  look_at_deferred();
  const BlockClocks::StrongAccess access{.scope = scope_of(a.i->aux),
                                         .reads = a.form.reads,
                                         .writes = a.form.writes,
                                         .acquires = (a.i->aux & kAcquire) != 0,
                                         .releases = (a.i->aux & kRelease) != 0};
  const int warp = block_warp(a.s, a.warp);
  if (a.owner == nullptr || a.owner == this)
    clocks_.strong_access(warp, a.owner == nullptr ? a.address : a.offset, a.owner != nullptr, access);
  else
    clocks_.strong_access(warp, a.owner->clocks_, a.offset, access);
}

std::uint32_t BlockSanitizer::event_of(const Access& a) {
  const int warp = block_warp(a.s, a.warp);
  return a.accesses.event_of(launch_,
                             static_cast<std::size_t>(warp) * launch_.memory_instructions() + a.form.index,
                             {.block = static_cast<std::uint32_t>(block_.index),
                              .time = now(warp),
                              .inst = a.i->id & AccessEvent::kInstMask,
                              .warp = static_cast<std::uint32_t>(warp) & (kMaxWarps - 1),
                              .strong = a.strong(),
                              .scope = static_cast<std::uint32_t>(scope_of(a.i->aux)) & 3});
}

/// Whether the scopes of both hold the blocks of both.
bool BlockSanitizer::in_scopes(const Access& a, const AccessEvent& e) const {
  const auto mine = static_cast<std::uint32_t>(block_.index);
  return launch_.clocks.common(e.block, mine) <= std::min(static_cast<Scope>(e.scope), scope_of(a.i->aux));
}

bool BlockSanitizer::ordered(const Access& a, std::uint32_t event, int lane) const {
  const AccessEvent& e = a.accesses[event];
  if (e.strong && a.strong() && in_scopes(a, e)) return true;
  const int warp = block_warp(a.s, a.warp);
  if (e.block != block_.index) return clocks_.after_block(warp, e.block, e.warp, e.time, a.strong());
  if (e.warp == warp && (lane == a.lane || launch_.lockstep)) return true;
  if (e.warp == warp && replayed_ != nullptr) return e.time.warp_barriers < replayed_->warp_barriers;
  return clocks_.after(warp, e.warp, e.time);
}

/// Two writes of one value, whichever comes last, and a read of it before or after them all give the same.
bool BlockSanitizer::changes_nothing(const Access& a, std::uint64_t byte, std::uint64_t bytes,
                                     const std::byte* memory, Toucher earlier) const {
  if (a.form.reads || a.form.opaque) return false;
  const std::size_t register_bytes = a.i->aux & kWideRegister ? 8 : 4;
  const std::uint64_t element = a.form.bytes / a.i->count, into = byte - a.offset;
  auto value = [&](int warp, int lane) {
    return a.s.regs + a.i->o[into / element] + static_cast<std::size_t>(warp * 32 + lane) * register_bytes +
           into % element;
  };
  const std::byte* mine = value(a.warp, a.lane);
  if (std::memcmp(mine, memory + byte, bytes) == 0) return true;
  // Other lanes of the same instruction have not written yet.
  const AccessEvent& e = a.accesses[earlier.event()];
  const int warp = static_cast<int>(e.warp) - a.s.gang * kGangWarps;
  return e.inst == a.i->id && e.block == block_.index && warp >= a.s.first_warp && warp < a.s.last_warp &&
         earlier.lane() < 32 && std::memcmp(mine, value(warp, earlier.lane()), bytes) == 0;
}

void BlockSanitizer::check_races(const Access& a, RaceShadow& shadow, const std::byte* memory) {
  ++launch_.counts.race_accesses;
  const std::uint32_t event = event_of(a);
  const Toucher here(event, a.lane);
  ShadowSector& sector = shadow.sector(a.offset);
  const auto cells = shadow.cells(sector, a.offset, a.form.bytes);
  const std::uint32_t cell_bytes = RaceShadow::cell_bytes(sector);
  for (std::size_t k = 0; k < cells.size(); ++k) {
    ShadowCell& cell = cells[k];
    const std::uint64_t byte = a.offset + k * cell_bytes;
    auto report = [&](FindingKind kind, Toucher other, bool wrote, const char* why) {
      raise_finding(
          a.s, a.i, kind,
          fmt::format("{} {} bytes at {}{}, which {}{}", a.form.writes ? "writes" : "reads", a.form.bytes,
                      what_is_at(a), a.i->aux & kNonCoherent ? " through the non-coherent cache" : "",
                      launch_.describe(a.accesses[other.event()], other.lane(), wrote, block_.index), why)
              .c_str(),
          a.warp, a.lane);
    };
    auto check = [&](Toucher other, bool wrote) {
      if (!other || ordered(a, other)) return;
      if (a.form.writes && changes_nothing(a, byte, cell_bytes, memory, other)) return;
      const AccessEvent& e = a.accesses[other.event()];
      const char* why = e.strong && a.strong() && e.block != block_.index
                            ? ", and the scope of one of them does not hold both blocks"
                        : e.block != block_.index           ? ", with no release and acquire in between"
                        : e.warp >= kMaxWarps               ? ", with no wait for it in between"
                        : e.warp == block_warp(a.s, a.warp) ? ", with no barrier of the warp in between"
                                                            : ", with no barrier of the block in between";
      report(a.owner != nullptr ? FindingKind::kSharedRace : FindingKind::kGlobalRace, other, wrote, why);
    };
    if (cell.write) {
      if (a.i->aux & kNonCoherent)
        report(FindingKind::kNonCoherentRead, cell.write, true, " in the same launch");
      check(cell.write, true);
    }
    if (a.form.writes) {
      for (const Toucher& read : cell.reads) check(read, false);
      cell = {.write = here, .reads = {}};
      continue;
    }
    // The latest reader, and of those before it one a later writer cannot also be: of another block, else of
    // another warp, and not known to be ordered before this one.
    Toucher& latest = cell.reads[0];
    Toucher& other = cell.reads[1];
    if (latest && latest.event() == event) {
      if (latest.lane() != a.lane) latest = Toucher(event, Toucher::kSeveral);
      continue;
    }
    if (latest) {
      const AccessEvent& was = a.accesses[latest.event()];
      const bool same_warp = was.block == block_.index && was.warp == block_warp(a.s, a.warp);
      if (!same_warp && (!other || ordered(a, other) || was.block != block_.index)) other = latest;
    }
    latest = here;
  }
}

}  // namespace stitchwork::sim
