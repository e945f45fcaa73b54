// What the sanitizers look at in exchanges within a warp: whom their masks name, and whom shuffles read.
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

}  // namespace stitchwork::sim
