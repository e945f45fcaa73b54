// The sanitizers' short way: the accesses of a warp's lanes looked at together, as nearly all can be.
#include <array>
#include <bit>

#include "simulator/sanitizer.h"

namespace stitchwork::sim {
namespace {

constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kAllocationShift) - 1;

/// What is known of one event, as neighbouring cells were mostly touched by one.
struct KnownEvent {
  std::uint32_t event = 0;
  bool ordered = false;  ///< before the access at hand, whatever the lanes
  bool same_warp = false, same_block = false;
};

/// Something that one lane, or several (Toucher::kSeveral), touches.
struct Place {
  std::uint64_t offset;
  int lane;
};

/// What the lanes of a warp touch.
class Places {
 public:
  /// False where lanes of a store may touch one byte: their order then decides.
  bool list(const std::array<std::uint64_t, 32>& addresses, std::uint32_t lanes, const MemoryForm& form) {
    std::uint64_t next = 0;
    for (std::uint32_t m = lanes; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const std::uint64_t offset = addresses[static_cast<std::size_t>(lane)] & kOffsetMask;
      if (form.writes && offset < next) return false;
      next = offset + form.bytes;
      // A value that a warp or its halves share is read by neighbours, or by lanes 16 apart.
      if (!form.writes && count_ > 0 && places_[count_ - 1].offset == offset) {
        places_[count_ - 1].lane = Toucher::kSeveral;
      } else if (!form.writes && lane >= 16 && half_ < count_ && places_[half_].offset == offset) {
        places_[half_++].lane = Toucher::kSeveral;
      } else {
        places_[count_++] = {offset, lane};
      }
    }
    return true;
  }
  const Place* begin() const { return places_.data(); }
  const Place* end() const { return places_.data() + count_; }

 private:
  std::array<Place, 32> places_;
  std::size_t count_ = 0;
  std::size_t half_ = 0;  ///< the next place of the first half that the second may come by again
};

/// Whether all lie in one allocation of so many bytes, aligned to what they move.
bool inside(const std::array<std::uint64_t, 32>& addresses, std::uint32_t lanes, std::uint64_t window,
            std::uint64_t bytes, std::uint64_t size) {
  std::uint64_t wrong = 0;
  for (std::size_t l = 0; l < addresses.size(); ++l) {
    const std::uint64_t address = addresses[l];
    const std::uint64_t here = ((address >> kAllocationShift) ^ window) | (address & (bytes - 1)) |
                               static_cast<std::uint64_t>((address & kOffsetMask) + bytes > size);
    wrong |= lanes >> l & 1 ? here : 0;
  }
  return wrong == 0;
}

}  // namespace

bool BlockChecks::look_at_warp(Strand& s, const Inst* i, const MemoryForm& form, int warp,
                               std::uint32_t lanes, const WarpAddresses& addresses) {
  using Space = MemoryForm::Space;
  if ((i->aux & kStrong) || form.opaque || (form.reads && form.writes) || !unset_elements_.empty() ||
      form.bytes % 4 != 0)
    return false;
  const auto first_lane = static_cast<std::size_t>(std::countr_zero(lanes));
  const std::uint64_t window = addresses[first_lane] >> kAllocationShift;
  const bool shared =
      form.space == Space::kShared || (form.space == Space::kGeneric && window == kSharedWindow);
  if (!shared && (form.space == Space::kLocal || window == kLocalWindow)) return false;

  std::uint64_t size = block_.shared_bytes;
  ByteFlags* written = &shared_written_;
  RaceShadow* shadow = &shared_shadow_;
  if (!shared) {
    Allocation* allocation = launch_.context.memory->impl().find(addresses[first_lane]);
    if (allocation == nullptr) return false;
    size = allocation->bytes.size();
    written = &allocation->written;
    if (launch_.what.race) shadow = &launch_.shadow(window, size);
  }
  const bool initialised = launch_.what.init && !written->empty();
  const bool races = launch_.what.race && !(i->aux & kUncounted);
  if (races && shadow->cell_bytes() != 4) return false;

  if (std::popcount(form.bytes) != 1 || !inside(addresses, lanes, window, form.bytes, size)) return false;
  Places places;
  if (!places.list(addresses, lanes, form)) return false;
  if (initialised && form.reads) {
    for (const Place& place : places)
      if (!written->all(place.offset, form.bytes)) return false;
  }
  if (races) {
    const Access any{s, i, form, warp, 0, 0, 0};
    const int of_block = block_warp(s, warp);
    const std::uint32_t event = event_of(any);
    KnownEvent known[2];
    const auto about = [&](Toucher t, KnownEvent& k) -> const KnownEvent& {
      if (k.event == t.event()) return k;
      const AccessEvent& e = launch_.event(t);
      k = {.event = t.event(),
           .ordered = ordered({s, i, form, warp, Toucher::kSeveral + 1, 0, 0}, t),
           .same_warp = e.block == block_.index && e.warp == of_block,
           .same_block = e.block == block_.index};
      return k;
    };
    const auto in_order = [&](Toucher t, KnownEvent& k, int lane) {
      if (!t) return true;
      const KnownEvent& e = about(t, k);
      return e.ordered || (e.same_warp && t.lane() == lane);
    };
    for (const auto& [offset, lane] : places) {
      const Toucher here(event, lane);
      for (ShadowCell& cell : shadow->cells(offset, form.bytes)) {
        if (cell.write && ((i->aux & kNonCoherent) || !in_order(cell.write, known[0], lane))) return false;
        Toucher& latest = cell.reads[0];
        Toucher& other = cell.reads[1];
        if (form.writes) {
          if (!in_order(latest, known[1], lane) || !in_order(other, known[0], lane)) return false;
          cell = {.write = here, .reads = {}};
        } else if (latest && latest.event() == event) {
          if (latest.lane() != lane) latest = Toucher(event, Toucher::kSeveral);
        } else {
          if (latest) {
            const KnownEvent& was = about(latest, known[1]);
            if (!was.same_warp &&
                (!other || !was.same_block || ordered({s, i, form, warp, lane, 0, 0}, other)))
              other = latest;
          }
          latest = here;
        }
      }
    }
    launch_.counts.race_accesses += std::popcount(lanes);
  }
  if (!initialised) return true;
  if (form.reads) {
    launch_.counts.init_accesses += std::popcount(lanes);
  } else {
    for (const Place& place : places) written->set(place.offset, form.bytes, true);
  }
  return true;
}

}  // namespace stitchwork::sim
