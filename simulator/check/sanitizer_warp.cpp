// The sanitizers' short way: the accesses of a warp's lanes looked at together, as nearly all can be.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "simulator/check/apart.h"
#include "simulator/check/sanitizer.h"

namespace stitchwork::sim {
namespace {

#if defined(__x86_64__) && !defined(__clang__)
#define SW_EACH_WIDTH __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define SW_EACH_WIDTH
#endif

// In vectors throughout: what is stored in one width and read back in another waits for the store.
typedef std::uint64_t Lanes8 __attribute__((vector_size(64)));
typedef std::uint64_t Lanes4 __attribute__((vector_size(32)));
typedef std::uint64_t Lanes2 __attribute__((vector_size(16)));
typedef std::uint32_t Narrow16 __attribute__((vector_size(64)));

__attribute__((always_inline)) inline std::uint64_t any_bits(const Lanes8& v) {
  Lanes4 half[2];
  std::memcpy(half, &v, sizeof half);
  half[0] |= half[1];
  Lanes2 quarter[2];
  std::memcpy(quarter, half, sizeof quarter);
  quarter[0] |= quarter[1];
  return quarter[0][0] | quarter[0][1];
}

__attribute__((always_inline)) inline LaneAddresses::Shape shape_of(const Lanes8& same, const Lanes8& run) {
  using Shape = LaneAddresses::Shape;
  if (any_bits(run) == 0) return Shape::kRuns;
  return any_bits(same) == 0 ? Shape::kSame : Shape::kUneven;
}

SW_EACH_WIDTH void shapes_of(const std::byte* registers, bool narrow, int shift, int warps,
                             LaneAddresses::Shape* shapes) {
  if (narrow) {
    const Narrow16 expected = Narrow16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} << shift;
    for (int w = 0; w < warps; ++w, registers += 2 * sizeof expected) {
      Narrow16 x, y;
      std::memcpy(&x, registers, sizeof x);
      std::memcpy(&y, registers + sizeof x, sizeof y);
      x -= x[0];
      y -= y[0];
      shapes[w] = shape_of((Lanes8)(x | y), (Lanes8)((x ^ expected) | (y ^ expected)));
    }
    return;
  }
  const Lanes8 low = Lanes8{0, 1, 2, 3, 4, 5, 6, 7} << shift,
               high = Lanes8{8, 9, 10, 11, 12, 13, 14, 15} << shift;
  for (int w = 0; w < warps; ++w, registers += 4 * sizeof low) {
    Lanes8 same = {}, run = {};
    for (std::size_t h = 0; h < 2; ++h) {
      Lanes8 x, y;
      std::memcpy(&x, registers + 2 * h * sizeof x, sizeof x);
      std::memcpy(&y, registers + (2 * h + 1) * sizeof x, sizeof y);
      const std::uint64_t first = x[0];
      x -= first;
      y -= first;
      same |= x | y;
      run |= (x ^ low) | (y ^ high);
    }
    shapes[w] = shape_of(same, run);
  }
}

/// Zero if all accesses of so many bytes lie in one allocation of `size`, aligned; else not.
SW_EACH_WIDTH std::uint64_t outside(const std::uint64_t* addresses, std::uint32_t lanes, std::uint64_t window,
                                    std::uint64_t bytes, std::uint64_t size) {
  std::uint64_t wrong = 0;
  for (std::uint32_t l = 0; l < 32; ++l) {
    const std::uint64_t address = addresses[l];
    const std::uint64_t here = ((address >> kAllocationShift) ^ window) | (address & (bytes - 1)) |
                               static_cast<std::uint64_t>((address & kAllocationOffsetMask) + bytes > size);
    wrong |= here & -static_cast<std::uint64_t>(lanes >> l & 1);
  }
  return wrong;
}

/// What the lanes of a warp touch.
class Pieces {
 public:
  static constexpr std::size_t kMost = 32;
  /// In an array of so many.
  explicit Pieces(Piece* pieces) : pieces_(pieces) {}
  /// `bytes` each, in an allocation of `size` in that window. False where accesses are misaligned or outside,
  /// or lanes of a store may touch one byte: their order then decides.
  bool list(const LaneAddresses& a, std::uint32_t lanes, std::uint64_t window, std::uint64_t bytes,
            std::uint64_t size, bool writes) {
    using Shape = LaneAddresses::Shape;
    if (lanes == ~0u && a.shape != Shape::kUneven) {
      const bool runs = a.shape == Shape::kRuns, same = !runs;
      const std::uint64_t first = a[0], second = a[16], half = runs ? 16 * bytes : bytes;
      if (inside(first, window, bytes, half, size) && inside(second, window, bytes, half, size)) {
        if (runs && second == first + half) return add(first, 2 * half, 0);
        if (runs && second != first && (second > first ? second - first : first - second) < half)
          return list_lanes(a, lanes, bytes, writes);
        if (writes && (same || first == second)) return false;
        if (first == second) return add(first, half, Toucher::kSeveral);
        return add(first, half, runs ? 0 : Toucher::kSeveral) &&
               add(second, half, runs ? 16 : Toucher::kSeveral);
      }
    }
    std::uint64_t addresses[32];
    for (int l = 0; l < 32; ++l) addresses[l] = a[l];
    return outside(addresses, lanes, window, bytes, size) == 0 && list_lanes(addresses, lanes, bytes, writes);
  }
  std::size_t count() const { return count_; }
  const Piece* begin() const { return pieces_; }
  const Piece* end() const { return pieces_ + count_; }

 private:
  static bool inside(std::uint64_t address, std::uint64_t window, std::uint64_t aligned, std::uint64_t bytes,
                     std::uint64_t size) {
    return address >> kAllocationShift == window && (address & (aligned - 1)) == 0 &&
           (address & kAllocationOffsetMask) + bytes <= size;
  }

  bool add(std::uint64_t address, std::uint64_t bytes, int first_lane) {
    pieces_[count_++] = {address & kAllocationOffsetMask, static_cast<std::uint32_t>(bytes), first_lane};
    return true;
  }

  template <class Addresses>
  bool list_lanes(const Addresses& addresses, std::uint32_t lanes, std::uint64_t bytes, bool writes) {
    std::uint64_t next = 0;
    int follows = -1;  // the lane that would lengthen the last piece
    for (std::uint32_t m = lanes; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const std::uint64_t offset = addresses[lane] & kAllocationOffsetMask;
      if (writes && offset < next) return false;
      if (count_ > 0 && offset == next && lane == follows) {
        pieces_[count_ - 1].bytes += static_cast<std::uint32_t>(bytes);
      } else if (count_ > 0 && offset + bytes == next && pieces_[count_ - 1].bytes == bytes) {
        pieces_[count_ - 1].first_lane = Toucher::kSeveral;
        continue;
      } else {
        pieces_[count_++] = {offset, static_cast<std::uint32_t>(bytes), lane};
      }
      next = offset + bytes;
      follows = lane + 1;
    }
    return true;
  }

  Piece* pieces_;
  std::size_t count_ = 0;
};

}  // namespace

void read_shapes(const std::byte* registers, bool narrow, std::uint32_t width, int warps,
                 LaneAddresses::Shape* shapes) {
  shapes_of(registers, narrow, std::countr_zero(width), warps, shapes);
}

/// The race check of one instruction of a warp. What it finds out about the order of an earlier event it
/// keeps, as neighbouring bytes were mostly touched by one.
class WarpLook {
 public:
  /// `rough`: what lanes read of a sector that nobody has written counts as all of it, which takes no cells;
  /// what is then found has to be looked at again.
  WarpLook(const BlockSanitizer& checks, const BlockSanitizer::Access& a, std::uint32_t event,
           RaceShadow& shadow, bool rough)
      : checks_(checks),
        a_(a),
        shadow_(shadow),
        event_(event),
        shift_(std::countr_zero(a.form.bytes)),
        writes_(a.form.writes),
        rough_(rough && !a.form.writes),
        non_coherent_((a.i->aux & kNonCoherent) != 0) {}

  /// False where something is not in order, or not found out so simply.
  bool look_at(const Piece& piece) {
    const std::uint64_t end = piece.offset + piece.bytes;
    for (std::uint64_t at = piece.offset; at < end;) {
      const std::uint64_t begin = at & ~std::uint64_t{RaceShadow::kSectorBytes - 1};
      const std::uint64_t next = std::min(begin + RaceShadow::kSectorBytes, end);
      ShadowSector& sector = shadow_.sector(at);
      const bool whole = next - at == RaceShadow::kSectorBytes;
      if (!whole && rough_ && sector.cells_log2 == 0 && sector.events[ShadowSector::kWrite] == 0) {
        if (!look_at_sector(sector, SectorLanes::several())) return false;
      } else if (!(whole ? look_at_sector(sector, lanes_at(piece, at))
                         : look_at_cells(sector, piece, at, next)))
        return false;
      at = next;
    }
    return true;
  }

 private:
  struct Known {
    std::uint32_t event = 0;
    bool ordered = false;  ///< before the access at hand, whatever the lanes
    bool same_warp = false, same_block = false;
  };

  int lane_at(const Piece& piece, std::uint64_t at) const {
    return piece.first_lane == Toucher::kSeveral
               ? Toucher::kSeveral
               : piece.first_lane + static_cast<int>((at - piece.offset) >> shift_);
  }
  SectorLanes lanes_at(const Piece& piece, std::uint64_t at) const {
    const int lane = lane_at(piece, at);
    return lane == Toucher::kSeveral ? SectorLanes::several() : SectorLanes(lane, shift_);
  }

  const Known& about(std::uint32_t event, Known& known) const {
    if (known.event == event) return known;
    const AccessEvent& e = a_.accesses[event];
    const bool same_block = e.block == checks_.block_.index;
    known = {.event = event,
             .ordered = checks_.ordered(a_, event, Toucher::kNobody),
             .same_warp = same_block && e.warp == checks_.block_warp(a_.s, a_.warp),
             .same_block = same_block};
    return known;
  }
  bool in_order(std::uint32_t event, bool same_lanes, Known& known) const {
    if (event == 0 || a_.accesses.settled(event)) return true;
    const Known& e = about(event, known);
    return e.ordered || (e.same_warp && same_lanes);
  }
  /// A read takes the place of `latest`: whether that takes the place of `other`.
  bool keeps(std::uint32_t latest, std::uint32_t other, bool other_same_lanes) {
    // What this block did before a barrier of all races with nothing that does not race with this, too.
    if (latest == 0 || a_.accesses.settled(latest)) return false;
    const Known& was = about(latest, read_);
    return !was.same_warp && (other == 0 || !was.same_block || in_order(other, other_same_lanes, write_));
  }

  bool look_at_sector(ShadowSector& sector, SectorLanes lanes) {
    if (sector.cells_log2 != 0) return look_at_divided(sector, lanes);
    std::uint32_t* const events = sector.events;
    SectorLanes* const by = sector.lanes;
    constexpr auto kWrite = ShadowSector::kWrite, kRead = ShadowSector::kRead,
                   kOther = ShadowSector::kOtherRead;
    if (events[kWrite] != 0 &&
        (non_coherent_ || !in_order(events[kWrite], lanes.same_one(by[kWrite]), write_)))
      return false;
    if (writes_) {
      if (!in_order(events[kRead], lanes.same_one(by[kRead]), read_) ||
          !in_order(events[kOther], lanes.same_one(by[kOther]), write_))
        return false;
      sector = {.events = {event_, 0, 0}, .lanes = {lanes, {}, {}}, .cells_log2 = 0};
      return true;
    }
    if (events[kRead] == event_) {
      if (lanes.same_one(by[kRead]) || by[kRead].are_several()) return true;
      if (!lanes.apart(by[kRead])) return look_at_divided(sector, lanes);
      by[kRead] = SectorLanes::several();
      return true;
    }
    if (keeps(events[kRead], events[kOther], lanes.same_one(by[kOther]))) {
      events[kOther] = events[kRead];
      by[kOther] = by[kRead];
    }
    events[kRead] = event_;
    by[kRead] = lanes;
    return true;
  }

  /// A whole sector, cell by cell.
  bool look_at_divided(ShadowSector& sector, SectorLanes lanes) {
    shadow_.cells(sector, 0, a_.form.bytes);  // divides it finely enough
    const auto cells = shadow_.cells(sector);
    const std::uint32_t cell_bytes = RaceShadow::cell_bytes(sector);
    for (std::uint32_t k = 0; k < cells.size(); ++k)
      if (!look_at_cell(cells[k], lanes.lane_of(k * cell_bytes))) return false;
    if (!writes_) return true;
    shadow_.join(sector);
    sector.events[ShadowSector::kWrite] = event_;
    sector.lanes[ShadowSector::kWrite] = lanes;
    return true;
  }

  /// [at, end) of a sector.
  bool look_at_cells(ShadowSector& sector, const Piece& piece, std::uint64_t at, std::uint64_t end) {
    for (; at < end; at += a_.form.bytes) {
      const int lane = lane_at(piece, at);
      for (ShadowCell& cell : shadow_.cells(sector, at, a_.form.bytes))
        if (!look_at_cell(cell, lane)) return false;
    }
    return true;
  }

  bool look_at_cell(ShadowCell& cell, int lane) {
    const auto fine = [&](Toucher t, Known& known) { return in_order(t.event(), t.lane() == lane, known); };
    if (cell.write && (non_coherent_ || !fine(cell.write, write_))) return false;
    Toucher& latest = cell.reads[0];
    Toucher& other = cell.reads[1];
    if (writes_) {
      if (!fine(latest, read_) || !fine(other, write_)) return false;
      cell = {.write = Toucher(event_, lane), .reads = {}};
    } else if (latest.event() == event_) {
      if (latest.lane() != lane) latest = Toucher(event_, Toucher::kSeveral);
    } else {
      if (keeps(latest.event(), other.event(), other.lane() == lane && lane != Toucher::kSeveral))
        other = latest;
      latest = Toucher(event_, lane);
    }
    return true;
  }

  const BlockSanitizer& checks_;
  const BlockSanitizer::Access& a_;
  RaceShadow& shadow_;
  const std::uint32_t event_;
  const int shift_;  ///< log2 of the bytes a lane touches
  const bool writes_, rough_, non_coherent_;
  Known write_, read_;
};

void BlockSanitizer::look_at_deferred() {
  deferring_ = false;
  if (deferred_.empty()) return;
  Strand strand;  // of which only the gang is asked for
  for (std::size_t k = 0; k < deferred_.size(); ++k) {
    const DeferredRead& read = deferred_[k];
    strand.gang = read.warp / kGangWarps;
    const MemoryForm& form = launch_.form(read.inst->id);
    const Access any{strand, read.inst, form, read.warp % kGangWarps, 0, 0, 0, shared_accesses_, this};
    replayed_ = &read.time;
    WarpLook look(*this, any, event_of(any), shared_shadow_, false);
    for (std::size_t p = read.first_piece; p < read.end_piece; ++p)
      SW_CHECK(look.look_at(deferred_pieces_[p]), "a read is out of order with what came before the barrier");
  }
  replayed_ = nullptr;
  deferred_.clear();
}

bool BlockSanitizer::look_at_warp(Strand& s, const Inst* i, const MemoryForm& form, int warp,
                                  std::uint32_t lanes, const LaneAddresses& addresses) {
  using Space = MemoryForm::Space;
  if ((i->aux & kStrong) || form.opaque || (form.reads && form.writes) || !unset_elements_.empty() ||
      (form.bytes & (form.bytes - 1)) != 0)
    return false;
  const int first_lane = std::countr_zero(lanes);
  const std::int64_t active = lanes == ~0u ? 32 : std::popcount(lanes);
  const std::uint64_t window = addresses[first_lane] >> kAllocationShift;
  const bool shared = form.space == Space::kShared || form.space == Space::kCluster ||
                      (form.space == Space::kGeneric && window == kSharedWindow);
  if (!shared && (form.space == Space::kLocal || window == kLocalWindow)) return false;

  BlockSanitizer* owner = nullptr;
  std::uint64_t size = 0;
  ByteFlags* written = nullptr;
  LaneAddresses local = addresses;
  if (shared) {  // of one block, else lane by lane
    std::uint64_t base = 0;
    owner = block_.cluster == nullptr ? this : owner_of(addresses[first_lane] & kAllocationOffsetMask, &base);
    if (owner == nullptr || (owner != this && form.space == Space::kShared)) return false;
    local.offset -= static_cast<std::int64_t>(base);
    size = owner->block_.shared_bytes;
    written = &owner->shared_written_;
  } else {
    Allocation* allocation = launch_.context.memory->impl().find(addresses[first_lane]);
    if (allocation == nullptr) return false;
    size = allocation->bytes.size();
    written = &allocation->written;
  }
  const bool initialised = launch_.what.init && !written->empty();
  const bool races = launch_.what.race && !(i->aux & kUncounted);

  // What is deferred is listed where it stays.
  const bool defers = races && deferring_ && owner == this && form.reads;
  std::array<Piece, Pieces::kMost> own;
  const std::size_t first_piece = defers && !deferred_.empty() ? deferred_.back().end_piece : 0;
  if (defers && deferred_pieces_.size() < first_piece + Pieces::kMost)
    deferred_pieces_.resize(2 * (first_piece + Pieces::kMost));
  Pieces pieces(defers ? &deferred_pieces_[first_piece] : own.data());
  if (!pieces.list(local, lanes, window, form.bytes, size, form.writes)) return false;
  if (shared && owner->has_async_objects())
    for (const Piece& piece : pieces)
      if (owner->touches_async_object(piece.offset, piece.bytes)) return false;
  if (!shared && form.writes && launch_.undo != nullptr)
    for (const Piece& piece : pieces) launch_.undo->keep(window, piece.offset, piece.bytes);
  if (initialised && form.reads) {
    for (const Piece& piece : pieces)
      if (!written->all(piece.offset, piece.bytes)) return false;
  }
  if (races) {
    if (defers) {
      const int of_block = block_warp(s, warp);
      deferred_.push_back({i, of_block, clocks_.now(of_block), first_piece, first_piece + pieces.count()});
      launch_.counts.race_accesses += active;
      if (initialised) launch_.counts.init_accesses += active;
      return true;
    }
    if (shared) look_at_deferred();
    const Access any{s,
                     i,
                     form,
                     warp,
                     first_lane,
                     0,
                     pieces.begin()->offset,
                     shared ? accesses_to(*owner) : global_accesses_,
                     owner};
    RaceShadow& shadow = shared ? owner->shared_shadow_ : launch_.shadow(window, size);
    if (shared && owner != this) check_lifetime(any);
    if (pieces.count() > 2) {  // scattered: have them fetched side by side; where cells are, the sector tells
      for (const Piece& piece : pieces) __builtin_prefetch(&shadow.sector(piece.offset));
      for (const Piece& piece : pieces) shadow.prefetch(piece.offset);
    }
    WarpLook look(*this, any, event_of(any), shadow, !shared && launch_.undo != nullptr);
    for (const Piece& piece : pieces)
      if (!look.look_at(piece)) return false;
    launch_.counts.race_accesses += active;
  }
  if (!initialised) return true;
  if (form.reads) {
    launch_.counts.init_accesses += active;
  } else {
    for (const Piece& piece : pieces) written->set(piece.offset, piece.bytes, true);
  }
  return true;
}

}  // namespace stitchwork::sim
