// Every form of the instruction table, on edge values and in full and partial warps, against the reference
// (conformance_reference.h). A form without a reference fails.
#include <fmt/format.h>

#include <random>

#include "simulator/isa/isa.h"
#include "simulator/machine/strand.h"
#include "tests/simulator/conformance_reference.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr int kLanes = kGangWarps * 32;

const std::vector<std::uint64_t>& edges(const std::string& type) {
  static const std::vector<std::uint64_t> kF32 = {
      0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff,
      0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0xbf800000, 0x3f000000, 0xbf000000,
      0x3fc00000, 0x40200000, 0xc0200000, 0x3f7fffff, 0x3f800001, 0x4b000000, 0x4f000000, 0xcf000000,
      0x4f800000, 0x5f000000, 0x5f800000, 0x477fe000, 0x477fefff, 0x477ff000, 0x33000000, 0x33800000,
      0x38800000, 0x3dcccccd, 0x42ff0000, 0x3f808000, 0x3f818000, 0x7f7f8000, 0x43e00000, 0x43e80000,
      0x3a800000, 0x3b000000, 0xc3160000, 0x42fe0000};
  static const std::vector<std::uint64_t> kF64 = {0,
                                                  0x8000000000000000,
                                                  1,
                                                  0x000fffffffffffff,
                                                  0x0010000000000000,
                                                  0x7fefffffffffffff,
                                                  0x7ff0000000000000,
                                                  0xfff0000000000000,
                                                  0x7ff8000000000000,
                                                  0x3ff0000000000000,
                                                  0xbff0000000000000,
                                                  0x3fe0000000000000,
                                                  0x3ff8000000000000,
                                                  0x4004000000000000,
                                                  0xc004000000000000,
                                                  0x3fefffffffffffff,
                                                  0x3ff0000000000001,
                                                  0x41dfffffffc00000,
                                                  0x41e0000000000000,
                                                  0xc1e0000000200000,
                                                  0x43e0000000000000,
                                                  0x43f0000000000000,
                                                  0x47efffffe0000000,
                                                  0x47effffff0000000,
                                                  0x36a0000000000000,
                                                  0x3690000000000000,
                                                  0x380fffffffffffff,
                                                  0x40effe0000000000,
                                                  0x40efffffffffffff,
                                                  0x3e70000000000000,
                                                  0x3fb999999999999a};
  static const std::vector<std::uint64_t> kHalf = {
      0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
      0x7e00, 0x3c00, 0xbc00, 0x3800, 0x3c01, 0x3bff, 0x7f7f, 0x7f80, 0xff80, 0x7fc0,
      0x3f80, 0xbf80, 0x0080, 0x007f, 0x4100, 0x4248, 0x3e00, 0x5bff, 0x57ff, 0x6400};
  static const std::vector<std::uint64_t> kInteger = {0,
                                                      1,
                                                      2,
                                                      3,
                                                      7,
                                                      8,
                                                      15,
                                                      16,
                                                      31,
                                                      32,
                                                      33,
                                                      63,
                                                      64,
                                                      65,
                                                      0x7f,
                                                      0x80,
                                                      0xff,
                                                      0x100,
                                                      0x7fff,
                                                      0x8000,
                                                      0xffff,
                                                      0x10000,
                                                      0x7fffffff,
                                                      0x80000000,
                                                      0x80000001,
                                                      0xfffffffe,
                                                      0xffffffff,
                                                      0x100000000,
                                                      0x7fffffffffffffff,
                                                      0x8000000000000000,
                                                      0xffffffffffffffff,
                                                      0x12345678,
                                                      0x0123456789abcdef,
                                                      16777217,
                                                      33554433};
  if (type == "f32") return kF32;
  if (type == "f64") return kF64;
  if (type == "h") return kHalf;
  return kInteger;
}

constexpr int kRounds = 18;

/// Value of source `k` (from 1) of one lane of all rounds: sources 1 and 2 run through all pairs of edge
/// values while there are lanes, everything else is an edge value or, one in four, any bits.
std::uint64_t draw(std::mt19937_64& rng, char letter, const std::string& type, std::size_t k,
                   std::size_t number) {
  std::uint64_t v = rng();
  const bool half = type.find("f16") != std::string::npos || letter == 'x';
  const auto& list = edges(letter == 'f' ? "f32" : letter == 'e' ? "f64" : half ? "h" : "integer");
  const std::size_t n = list.size();
  static_assert(kRounds / 2 * kLanes >= 48 * 48, "all pairs of at most 48 edge values");
  if (number < n * n) {
    v = list[k == 1 ? number % n : k == 2 ? number / n : rng() % n];
  } else if (rng() % 4 != 0) {
    v = list[rng() % n];
  }
  if (half && letter != 'x' && letter != 'h') v = (v & 0xffff) | list[rng() % n] << 16;
  if (type == "f32x2") v = edges("f32")[rng() % 40] | edges("f32")[rng() % 40] << 32;
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
