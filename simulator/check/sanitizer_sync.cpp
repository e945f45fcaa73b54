// What the sanitizers look at in exchanges within a warp (whom their masks name, and whom shuffles read), and
// in mbarriers: who initialised them, and who is ordered after whom by them.
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "simulator/check/sanitizer.h"
#include "simulator/isa/shuffle.h"

namespace stitchwork::sim {

void BlockSanitizer::look_at_members(Strand& s, const Inst* i, const ExchangeForm& form) {
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const std::uint32_t mask = s.mask[w];
    const auto value = [&](std::uint32_t operand, int lane) {
      std::uint32_t v = 0;
      std::memcpy(&v, s.regs + operand + (w * 32 + lane) * 4, sizeof v);
      return v;
    };
    for (std::uint32_t m = mask; m != 0; m &= m - 1) {
      const int lane = std::countr_zero(m);
      const std::uint32_t named = value(i->o[form.members], lane);
      const auto raise = [&](const std::string& what) {
        raise_finding(s, i, FindingKind::kMembermask, what.c_str(), w, lane);
      };
      if (!(named >> lane & 1))
        raise(fmt::format("{} by lane {}, which its own membermask {:#010x} does not name", form.name, lane,
                          named));
      for (std::uint32_t others = named & mask & ~(1u << lane); others != 0; others &= others - 1) {
        const int other = std::countr_zero(others);
        if (const std::uint32_t its = value(i->o[form.members], other); its != named)
          raise(fmt::format("{} with membermask {:#010x} names lane {}, whose membermask is {:#010x}",
                            form.name, named, other, its));
      }
      if (!form.shuffles) continue;
      bool in_range = false;
      const int from = shuffle_source(i->flags, static_cast<std::uint32_t>(lane), value(i->o[3], lane),
                                      value(i->o[4], lane), &in_range);
      if (mask >> from & named >> from & 1) continue;
      raise(fmt::format("shuffle reads lane {} of warp {}, which {}", from, block_warp(s, w),
                        !(named >> from & 1) ? fmt::format("its membermask {:#010x} does not name", named)
                        : !(s.alive[w] >> from & 1) ? "has ended, or is past the end of the block"
                                                    : "is elsewhere"));
    }
  }
}

void BlockSanitizer::mbarrier_init(const Strand& s, int warp, std::uint64_t offset) {
  if (!launch_.what.race) return;
  const int of_block = block_warp(s, warp);
  mbarriers_[offset] = {.init_warp = of_block, .init = clocks_.now(of_block), .arriving = {}, .arrived = {}};
}

void BlockSanitizer::mbarrier_use(Strand& s, const Inst* i, int warp, int lane, BlockChecks& checks_of_owner,
                                  std::uint64_t offset) {
  BlockSanitizer& owner = of(checks_of_owner);
  if (!launch_.what.race) return;
  ++launch_.counts.race_accesses;
  const MbarrierOrder& m = owner.mbarriers_.at(offset);
  const int of_block = block_warp(s, warp);
  const bool after = &owner != this
                         ? clocks_.after_block(of_block, static_cast<std::uint32_t>(owner.block_.index),
                                               m.init_warp, m.init, true)
                         : of_block == m.init_warp || clocks_.after(of_block, m.init_warp, m.init);
  if (!after)
    raise_finding(
        s, i, FindingKind::kSharedRace,
        fmt::format("uses the mbarrier at shared memory offset {}, which warp {}{} initialised, with "
                    "no barrier in between",
                    offset, m.init_warp, &owner != this ? " of its block" : "")
            .c_str(),
        warp, lane);
}

void BlockSanitizer::mbarrier_arrive(const Strand& s, int warp, BlockChecks& checks_of_owner,
                                     std::uint64_t offset, SyncOrder order) {
  BlockSanitizer& owner = of(checks_of_owner);
  if (!launch_.what.race) return;
  look_at_deferred();
  BlockClocks::AtMbarrier& at = owner.mbarriers_.at(offset).arriving;
  if (&owner == this)
    clocks_.mbarrier_arrive(block_warp(s, warp), at, s.mask[warp] == s.alive[warp], order.relaxed);
  else
    clocks_.mbarrier_arrive_remote(block_warp(s, warp), at, order);
}

void BlockSanitizer::mbarrier_complete(std::uint64_t offset) {
  if (!launch_.what.race) return;
  MbarrierOrder& m = mbarriers_.at(offset);
  m.arrived = m.arriving;
}

void BlockSanitizer::mbarrier_wait(const Strand& s, int warp, std::uint64_t offset, SyncOrder order) {
  if (launch_.what.race) clocks_.mbarrier_wait(block_warp(s, warp), mbarriers_.at(offset).arrived, order);
}

void BlockSanitizer::proxy_fence(const Strand& s, const Inst* i) {
  if (!launch_.what.race) return;
  for (int w = s.first_warp; w < s.last_warp; ++w)
    if (s.mask[w] != 0) clocks_.proxy_fence(block_warp(s, w), i->flags);
}

}  // namespace stitchwork::sim
