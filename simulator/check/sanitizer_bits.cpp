// Registers and bytes of which some bits are set: words that hold bit fields.
#include <algorithm>
#include <bit>
#include <cstring>

#include "simulator/check/sanitizer.h"

namespace stitchwork::sim {
namespace {

using Rule = ptx::BitRule;

/// The lowest so many.
constexpr std::uint64_t low_bits(std::uint64_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// A source: what it holds, and which bits of that are set.
struct Source {
  std::uint64_t value = 0, set = ~std::uint64_t{0};
};

/// Bits of a result whose bits from `width` on are copies of the one below.
std::uint64_t with_sign(std::uint64_t set, std::uint64_t width) {
  const bool sign = width > 0 && (set >> (width - 1) & 1);
  return (set & low_bits(width)) | (sign ? ~low_bits(width) : 0);
}

/// Which bits of the result of an instruction are set; shifts and places are counted by sources that are set.
std::uint64_t bits_of_result(const Rule& rule, const Source (&in)[4]) {
  const auto& [a, b, c, d] = in;
  const std::uint64_t all = ~std::uint64_t{0}, width = rule.from;
  const std::uint64_t count = b.value & 0xffffffff;
  switch (rule.kind) {
    case Rule::Kind::kAnd:
      return (a.set & b.set) | (a.set & ~a.value) | (b.set & ~b.value);
    case Rule::Kind::kOr:
      return (a.set & b.set) | (a.set & a.value) | (b.set & b.value);
    case Rule::Kind::kBoth:
      return a.set & b.set;
    case Rule::Kind::kLeft:
      return b.set != all ? 0 : count >= width ? all : a.set << count | low_bits(count);
    case Rule::Kind::kRight:
      return b.set != all     ? 0
             : count >= width ? all
                              : (a.set | ~low_bits(width)) >> count | ~low_bits(width - count);
    case Rule::Kind::kRightSigned: {
      const std::uint64_t by = std::min(count, width - 1);
      return b.set != all ? 0 : with_sign((a.set & low_bits(width)) >> by, width - by);
    }
    case Rule::Kind::kInsert: {  // PTX ISA, "bfi": counts are of 8 bits
      const std::uint64_t at = c.value & 0xff, field = d.value & 0xff;
      if (c.set != all || d.set != all) return 0;
      const std::uint64_t mask = at >= width ? 0 : low_bits(field) << at;
      return (b.set & ~mask) | (at >= width ? 0 : (a.set << at) & mask);
    }
    case Rule::Kind::kExtract:
    case Rule::Kind::kExtractSigned: {
      const std::uint64_t at = b.value & 0xff, field = c.value & 0xff;
      if (b.set != all || c.set != all) return 0;
      const std::uint64_t shifted = at >= width ? 0 : (a.set & low_bits(width)) >> at;
      const std::uint64_t there = at >= width ? 0 : std::min(field, width - at);  // before the sign's copies
      if (rule.kind == Rule::Kind::kExtract) return shifted | ~low_bits(there);
      const bool sign = a.set >> (at + field == 0 ? 0 : std::min(at + field, width) - 1) & 1;
      return field == 0 ? all : (shifted & low_bits(there)) | (sign ? ~low_bits(there) : 0);
    }
    case Rule::Kind::kCopy:
    case Rule::Kind::kNot:
    case Rule::Kind::kConvert:
      return a.set | ~low_bits(rule.from);
    case Rule::Kind::kConvertSigned:
      return with_sign(a.set, rule.from);
    case Rule::Kind::kNone:
      break;
  }
  return 0;
}

/// Whether operand k is a count or a place, which has 32 bits whatever the sources have.
bool is_count(Rule::Kind kind, int k) {
  using Kind = Rule::Kind;
  const bool shifts = kind == Kind::kLeft || kind == Kind::kRight || kind == Kind::kRightSigned,
             extracts = kind == Kind::kExtract || kind == Kind::kExtractSigned;
  return ((shifts || extracts) && k >= 2) || (kind == Kind::kInsert && k >= 3);
}

int sources_of(Rule::Kind kind) {
  using Kind = Rule::Kind;
  switch (kind) {
    case Kind::kCopy:
    case Kind::kNot:
    case Kind::kConvert:
    case Kind::kConvertSigned:
      return 1;
    case Kind::kExtract:
    case Kind::kExtractSigned:
      return 3;
    case Kind::kInsert:
      return 4;
    default:
      return 2;
  }
}

}  // namespace

std::size_t BlockSanitizer::tracked_register(const ptx::TrackedInst& t, int operand, int block_warp) const {
  const std::size_t warps = (block_.threads + 31) / 32;
  return static_cast<std::size_t>(t.registers[operand]) * warps + static_cast<std::size_t>(block_warp);
}

BlockSanitizer::SomeBits BlockSanitizer::bits_set(std::size_t tracked, int lane) const {
  if (registers_set_[tracked] >> lane & 1) return {~std::uint64_t{0}};
  const auto some = bits_set_.find(tracked * 32 + static_cast<std::size_t>(lane));
  return some == bits_set_.end() ? SomeBits{} : some->second;
}

void BlockSanitizer::keep_bits(std::size_t tracked, int lane, SomeBits bits) {
  const std::size_t key = tracked * 32 + static_cast<std::size_t>(lane);
  if (bits.set == 0)
    bits_set_.erase(key);
  else
    bits_set_[key] = bits;
}

std::uint32_t BlockSanitizer::look_at_bits(const Strand& s, const Inst* i, const ptx::TrackedInst& t,
                                           int warp, std::uint32_t lanes) {
  std::uint32_t whole = 0;
  const int sources = sources_of(t.bits.kind);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    Source in[4];
    bool as_stored = t.bits.kind == Rule::Kind::kCopy;
    for (int k = 1; k <= sources; ++k) {
      const bool wide = t.bits.from == 64 && !is_count(t.bits.kind, k);
      std::memcpy(&in[k - 1].value, s.regs + i->o[k] + (warp * 32 + lane) * (wide ? 8 : 4), wide ? 8 : 4);
      if (t.uses >> k & 1) {
        const SomeBits some = bits_set(tracked_register(t, k, block_warp(s, warp)), lane);
        in[k - 1].set = some.set;
        as_stored = as_stored && some.as_stored;
      }
      const std::uint64_t bits = is_count(t.bits.kind, k) ? 32 : t.bits.from;
      in[k - 1].set |= ~low_bits(bits);
    }
    // Nothing is open beyond what the instruction makes: cvt.u8 fills its register.
    const std::uint64_t set = bits_of_result(t.bits, in) | ~low_bits(t.bits.to);
    if (set == ~std::uint64_t{0})
      whole |= 1u << lane;
    else if (t.defs & 1)
      keep_bits(tracked_register(t, 0, block_warp(s, warp)), lane, {set, as_stored});
  }
  return whole;
}

/// Of a store at hand. In global memory a word counts as written if some bits of it are set.
void BlockSanitizer::keep_unset_elements(const Access& a, ByteFlags& written) {
  const ptx::TrackedInst* const t = launch_.tracked(a.i->id);
  const bool global = a.owner == nullptr && a.address >> kAllocationShift >= kFirstAllocation;
  const std::uint32_t size = a.form.bytes / a.i->count;
  for (std::uint32_t k = 0; k < a.i->count; ++k) {
    if (!(unset_elements_[static_cast<std::size_t>(a.warp)][k] >> a.lane & 1)) continue;
    const std::uint64_t bits =
        bits_set(tracked_register(*t, static_cast<int>(k), block_warp(a.s, a.warp)), a.lane).set;
    const std::uint64_t first = a.offset + k * size;
    if (global)
      written.set(first, size, (bits & low_bits(8 * size)) != 0);
    else
      for (std::uint32_t b = 0; b < size; ++b)
        written.set_bits(first + b, static_cast<std::uint8_t>(bits >> 8 * b));
  }
}

}  // namespace stitchwork::sim
