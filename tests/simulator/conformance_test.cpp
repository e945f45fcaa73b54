// Every form of the instruction table, on edge values and in full and partial warps, against the reference
// (conformance_reference.h). A form without a reference fails.
#include <fmt/format.h>

#include <random>

#include "simulator/isa/isa.h"
#include "simulator/machine/strand.h"
#include "tests/simulator/conformance_reference.h"
#include "tests/simulator/edge_values.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr int kLanes = kGangWarps * 32;

constexpr int kRounds = 18;

/// Value of source `k` (from 1) of one lane of all rounds: sources 1 and 2 run through all pairs of edge
/// values while there are lanes, everything else is an edge value or, one in four, any bits.
std::uint64_t draw(std::mt19937_64& rng, char letter, const std::string& type, std::size_t k,
                   std::size_t number) {
  std::uint64_t v = rng();
  const bool half = type.find("f16") != std::string::npos || letter == 'x';
  const auto& list = edge_values(letter == 'f' ? "f32" : letter == 'e' ? "f64" : half ? "h" : "integer");
  const std::size_t n = list.size();
  static_assert(kRounds / 2 * kLanes >= 48 * 48, "all pairs of at most 48 edge values");
  if (number < n * n) {
    v = list[k == 1 ? number % n : k == 2 ? number / n : rng() % n];
  } else if (rng() % 4 != 0) {
    v = list[rng() % n];
  }
  if (half && letter != 'x' && letter != 'h') v = (v & 0xffff) | list[rng() % n] << 16;
  if (type == "f32x2") v = edge_values("f32")[rng() % 40] | edge_values("f32")[rng() % 40] << 32;
  if (letter == 'h' || letter == 'x') v &= 0xffff;
  if (letter == 'r' || letter == 'f') v &= 0xffffffff;
  if (letter == 'p') v &= 1;
  return v;
}

int bytes_of(char letter) { return letter == 'd' || letter == 'e' ? 8 : 4; }

/// Operands of all lanes, and the registers they lie in.
struct Case {
  std::vector<std::uint64_t> values[5];
  std::vector<std::byte> registers = std::vector<std::byte>(6 * kSlot64Bytes, std::byte{0x5a});
};

Case make_case(const std::string& signature, const std::string& type, int round, std::mt19937_64& rng) {
  Case c;
  for (std::size_t k = 1; k < signature.size(); ++k) {
    const char letter = signature[k];
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t v = draw(rng, letter, type, k, static_cast<std::size_t>(round / 2 * kLanes + lane));
      c.values[k - 1].push_back(v);
      std::byte* slot = c.registers.data() + k * kSlot64Bytes;
      if (letter == 'p') {
        std::uint32_t word = 0;
        std::memcpy(&word, slot + lane / 32 * 4, 4);
        word = (word & ~(1u << lane % 32)) | static_cast<std::uint32_t>(v) << lane % 32;
        std::memcpy(slot + lane / 32 * 4, &word, 4);
      } else {
        std::memcpy(slot + lane * bytes_of(letter), &v, static_cast<std::size_t>(bytes_of(letter)));
      }
    }
  }
  return c;
}

/// The pattern that appears in the spelling, expanded; empty: all is well.
std::string check_form(const IsaRow& row, const std::string& opcode, std::mt19937_64& rng) {
  const std::string signature = row.signature;
  const reference::Form form(opcode);
  const std::string type = form.base == "cvt" && !form.has("pack") ? form.modifiers.back() : form.type();
  const std::string result = form.result_type();
  for (int round = 0; round < kRounds; ++round) {
    // Two rounds have the same numbers of pairs: one of full warps, one of partial ones.
    Case c = make_case(signature, type, round, rng);
    Inst inst{};
    for (std::size_t k = 0; k < signature.size(); ++k)
      inst.o[k] = static_cast<std::uint32_t>(k * kSlot64Bytes);
    Strand s;
    s.regs = c.registers.data();
    s.last_warp = kGangWarps;
    for (int w = 0; w < kGangWarps; ++w) s.mask[w] = round % 2 ? 0x5a5aff00u << w : ~0u;
    (round % 2 ? row.masked : row.full)(s, &inst);
    for (int lane = 0; lane < kLanes; ++lane) {
      const bool active = s.mask[lane / 32] >> lane % 32 & 1;
      std::uint64_t got = 0, sources[5] = {};
      for (int k = 0; k < 5; ++k)
        if (!c.values[k].empty()) sources[k] = c.values[k][static_cast<std::size_t>(lane)];
      if (signature[0] == 'p') {
        std::uint32_t word = 0;
        std::memcpy(&word, c.registers.data() + lane / 32 * 4, 4);
        got = word >> lane % 32 & 1;
      } else {
        std::memcpy(&got, c.registers.data() + lane * bytes_of(signature[0]),
                    static_cast<std::size_t>(bytes_of(signature[0])));
      }
      if (!active) {
        if (signature[0] != 'p' &&
            got != (bytes_of(signature[0]) == 8 ? 0x5a5a5a5a5a5a5a5aull : 0x5a5a5a5aull))
          return fmt::format("{} writes lanes that do not run", opcode);
        continue;
      }
      const auto expected = reference::evaluate(form, sources);
      if (!expected) return fmt::format("{} has no reference", opcode);
      if ((signature[0] == 'h' || signature[0] == 'x') && got >> 16 != 0)
        return fmt::format("{} leaves {:#x} in a 16-bit register", opcode, got);
      if (!reference::matches(result, *expected, got))
        return fmt::format("{} of {:#x} {:#x} {:#x} {:#x} gives {:#x}, the reference {:#x} {}", opcode,
                           sources[0], sources[1], sources[2], sources[3], got, expected->bits,
                           expected->value ? std::to_string(*expected->value) : "");
    }
  }
  return "";
}

TEST(Conformance, EveryFormOfTheTableGivesWhatItsReferenceDoes) {
  std::mt19937_64 rng(11);
  int forms = 0;
  for (const IsaRow& row : isa_rows()) {
    if (row.spelling[0] == '@') continue;
    ASSERT_STRNE(row.signature, "") << row.spelling;
    for (const std::string& opcode : expand_spelling(row.spelling)) {
      ++forms;
      const std::string wrong = check_form(row, opcode, rng);
      EXPECT_EQ(wrong, "");
    }
  }
  EXPECT_GT(forms, 1000);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
