// Registers that nothing set: what is made of them, what of it goes through memory, and where it decides
// something.
#include <array>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "simulator/check/sanitizer.h"
#include "simulator/isa/shuffle.h"

namespace stitchwork::sim {

void BlockSanitizer::set_registers(const Strand& s, const ptx::TrackedInst& t) {
  for (int w = s.first_warp; w < s.last_warp; ++w)
    for (int k = 0; k < 6; ++k)
      if (t.defs >> k & 1) registers_set_[tracked_register(t, k, block_warp(s, w))] |= s.mask[w];
}

namespace {

/// Of a shuffle: the lanes that read one of `lanes`.
std::uint32_t read_lanes(const Inst* i, const Strand& s, int warp, std::uint32_t lanes) {
  std::array<std::uint32_t, 32> b, c;
  std::memcpy(b.data(), s.regs + i->o[3] + warp * 128, sizeof b);
  std::memcpy(c.data(), s.regs + i->o[4] + warp * 128, sizeof c);
  std::uint32_t result = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    bool in_range = false;
    result |= (lanes >> shuffle_source(i->flags, lane, b[lane], c[lane], &in_range) & 1) << lane;
  }
  return result;
}

/// Those of `lanes` whose access is of global memory.
std::uint32_t global_lanes(const Inst* i, const MemoryForm& form, const Strand& s, int warp,
                           std::uint32_t lanes) {
  if (form.space != MemoryForm::Space::kGeneric) return form.space == MemoryForm::Space::kGlobal ? lanes : 0;
  std::uint32_t result = 0;
  for (std::uint32_t m = lanes; m != 0; m &= m - 1) {
    std::uint64_t address = 0;
    std::memcpy(&address, s.regs + i->o[4] + (warp * 32 + std::countr_zero(m)) * 8, sizeof address);
    if ((address + static_cast<std::uint64_t>(i->imm)) >> kAllocationShift >= kFirstAllocation)
      result |= m & (~m + 1);
  }
  return result;
}

}  // namespace

/// Of a store, the lanes that have set no element of its vector; of a vector that several instructions move,
/// at the last of them.
std::uint32_t BlockSanitizer::lanes_without_element(const Strand& s, const Inst* i, const ptx::TrackedInst& t,
                                                    int warp) {
  std::uint32_t none = s.mask[warp];
  for (int k = 0; k < i->count && none != 0; ++k) {
    if (!(t.uses >> k & 1)) return 0;
    const std::size_t tracked = tracked_register(t, k, block_warp(s, warp));
    none &= ~registers_set_[tracked];
    for (std::uint32_t m = bits_set_.empty() ? 0 : none; m != 0; m &= m - 1)
      if (bits_set(tracked, std::countr_zero(m)).as_stored) none &= ~(m & (~m + 1));
  }
  if (!(i->aux & kPartOfVector)) return none;
  auto& part = unset_parts_[static_cast<std::size_t>(warp)];
  if (part.first + 1 == i->id) return none & part.lanes;
  part = {i->id, none};
  return 0;
}

void BlockSanitizer::look_at_registers(Strand& s, const Inst* i, const ptx::TrackedInst& t) {
  using Rule = ptx::TrackedInst::Rule;
  const MemoryForm& form = launch_.form(i->id);
  for (int w = s.first_warp; w < s.last_warp; ++w) {
    const std::uint32_t mask = s.mask[w];
    if (mask == 0) continue;
    auto lanes = [&](int operand) -> std::uint32_t& {
      return registers_set_[tracked_register(t, operand, block_warp(s, w))];
    };
    auto set = [&](int operand) { return t.uses >> operand & 1 ? lanes(operand) : ~0u; };
    auto predicate = [&](int operand) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, s.regs + i->o[operand] + w * 4, 4);
      return bits;
    };
    std::uint32_t now = ~0u;
    if (t.rule == Rule::kChoice) {
      now = set(3) & ((predicate(3) & set(1)) | (~predicate(3) & set(2)));
    } else if (t.rule == Rule::kAnd || t.rule == Rule::kOr) {
      const std::uint32_t decides = t.rule == Rule::kAnd ? ~0u : 0;
      now = (set(1) & set(2)) | (set(1) & (predicate(1) ^ decides)) | (set(2) & (predicate(2) ^ decides));
    } else if (t.rule == Rule::kAny) {
      now = set(1) | set(2);
    } else if (t.rule == Rule::kExchange) {
      now = read_lanes(i, s, w, set(2));
    } else {
      for (int k = 0; k < 6; ++k) now &= set(k);
      if (t.bits.kind != ptx::BitRule::Kind::kNone && (mask & ~now) != 0)
        now |= look_at_bits(s, i, t, w, mask & ~now);
    }
    const bool stores = form.writes && !form.reads && !form.opaque;
    const std::uint32_t no_element = stores ? lanes_without_element(s, i, t, w) : 0;
    for (int k = 0; k < 6 && t.rule == Rule::kUse; ++k) {
      std::uint32_t missing = mask & ~set(k);
      if (missing == 0) continue;
      if (stores && k < i->count) {
        unset_elements_.resize(kGangWarps);
        unset_elements_[static_cast<std::size_t>(w)][static_cast<std::size_t>(k)] = missing;
        missing = global_lanes(i, form, s, w, missing & no_element);
        if (missing == 0) continue;
      }
      raise_finding(
          s, i, FindingKind::kUnsetRegister,
          fmt::format("uses {}, which this thread never set, or made of what was never set or written",
                      launch_.program().tracked_names[static_cast<std::size_t>(t.registers[k])])
              .c_str(),
          w, __builtin_ctz(missing));
    }
    for (int k = 0; k < 6; ++k) {
      if (!(t.defs >> k & 1)) continue;
      const bool in_range = t.rule == Rule::kExchange && k == 1;  // a predicate, which is always set
      lanes(k) = (lanes(k) & ~mask) | ((in_range ? ~0u : now) & mask);
      if (bits_set_.empty() || t.bits.kind != ptx::BitRule::Kind::kNone) continue;
      for (std::uint32_t m = mask & ~lanes(k); m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        const int chosen = t.rule != Rule::kChoice || !(set(3) >> lane & 1) ? 0
                           : predicate(3) >> lane & 1                       ? 1
                                                                            : 2;
        keep_bits(tracked_register(t, k, block_warp(s, w)), lane,
                  chosen == 0 ? SomeBits{} : bits_set(tracked_register(t, chosen, block_warp(s, w)), lane));
      }
    }
  }
}

/// What is loaded into registers that are looked after is as unset as its memory: whether that is all that
/// was never written.
bool BlockSanitizer::leaves_to_use(const Access& a, const ByteFlags& written) {
  const ptx::TrackedInst* t = launch_.tracked(a.i->id);
  if (t == nullptr || a.form.writes || a.form.opaque) return false;
  const bool global = a.owner == nullptr && a.address >> kAllocationShift >= kFirstAllocation;
  if (a.i->count < 2 && (global || !launch_.program().passes_unset)) return false;
  const std::uint32_t size = a.form.bytes / launch_.program().read_elements[a.i->id];
  std::uint32_t missing = 0;
  for (std::uint32_t k = 0; k * size < a.form.bytes; ++k)
    if (!written.all(a.offset + k * size, size)) missing |= 1u << k;
  if ((missing & ~std::uint32_t{t->defs}) != 0) return false;
  for (; missing != 0; missing &= missing - 1) {
    const int k = std::countr_zero(missing);
    const std::size_t tracked = tracked_register(*t, k, block_warp(a.s, a.warp));
    registers_set_[tracked] &= ~(1u << a.lane);
    std::uint64_t bits = 0;
    for (std::uint32_t b = 0; b < size; ++b)
      bits |= std::uint64_t{written.bits(a.offset + static_cast<std::uint32_t>(k) * size + b)} << 8 * b;
    const std::uint64_t beyond = size < 8 ? ~std::uint64_t{0} << 8 * size : 0;
    keep_bits(tracked, a.lane, {bits | beyond, bits != 0});
  }
  return true;
}

}  // namespace stitchwork::sim
