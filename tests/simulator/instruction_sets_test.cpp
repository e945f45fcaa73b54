// Each vector width must compute the same bits: the widest the processor has against plain x86-64.
#include <random>

#include "simulator/isa/isa.h"
#include "simulator/machine/strand.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

constexpr int kLanes = kGangWarps * 32;

std::uint32_t random_bits32(std::mt19937_64& rng) {
  static constexpr std::uint32_t kSpecial[] = {
      0,          0x80000000, 1,      0xffffffff, 0x7fffffff, 0x3f800000, 0x7f800000, 0xff800000,
      0x7fc00000, 0x00400000, 0x3c00, 0x7c00,     0x00800000, 31,         32,         0x4b400001};
  switch (rng() % 4) {
    case 0:
      return kSpecial[rng() % std::size(kSpecial)];
    case 1: {  // floats of ordinary size
      const float v = static_cast<float>(static_cast<std::int64_t>(rng() % 2000000) - 1000000) / 4096.0f;
      std::uint32_t bits;
      std::memcpy(&bits, &v, 4);
      return bits;
    }
    default:
      return static_cast<std::uint32_t>(rng());
  }
}

bool is_nan(char letter, std::uint64_t v) {
  if (letter == 'e') return (v & 0x7fffffffffffffff) > 0x7ff0000000000000;
  return letter == 'f' && (v & 0x7fffffff) > 0x7f800000;
}

struct Registers {
  std::vector<std::byte> bytes = std::vector<std::byte>(6 * kSlot64Bytes);
};

void compare_tables(std::span<const IsaRow> a, std::span<const IsaRow> b) {
  ASSERT_EQ(a.size(), b.size());
  std::mt19937_64 rng(7);
  for (std::size_t r = 0; r < a.size(); ++r) {
    const std::string_view signature = a[r].signature;
    ASSERT_STREQ(a[r].spelling, b[r].spelling);
    if (signature.empty()) continue;  // control and memory: tested by running kernels
    for (int round = 0; round < 4; ++round) {
      Registers in;
      for (std::size_t at = 0; at < in.bytes.size(); at += 4) {
        const std::uint32_t v = random_bits32(rng);
        std::memcpy(in.bytes.data() + at, &v, 4);
      }
      for (std::size_t k = 0; k < signature.size(); ++k) {
        if (signature[k] != 'h' && signature[k] != 'x') continue;
        for (int lane = 0; lane < kLanes; ++lane)
          std::memset(&in.bytes[k * kSlot64Bytes + lane * 4 + 2], 0, 2);
      }
      Inst inst{};
      for (std::size_t k = 0; k < signature.size(); ++k)
        inst.o[k] = static_cast<std::uint32_t>(k * kSlot64Bytes);
      Registers out[2] = {in, in};
      for (int side = 0; side < 2; ++side) {
        Strand s;
        s.regs = out[side].bytes.data();
        s.first_warp = 0;
        s.last_warp = kGangWarps;
        for (int w = 0; w < kGangWarps; ++w) s.mask[w] = round % 2 ? 0x5a5aff00u << w : ~0u;
        const IsaRow& row = side ? b[r] : a[r];
        (round % 2 ? row.masked : row.full)(s, &inst);
      }
      const char d = signature[0];
      if (d == 'p') {
        ASSERT_EQ(std::memcmp(out[0].bytes.data(), out[1].bytes.data(), kGangWarps * 4), 0) << a[r].spelling;
        continue;
      }
      const int size = d == 'd' || d == 'e' ? 8 : 4;
      for (int lane = 0; lane < kLanes; ++lane) {
        std::uint64_t x = 0, y = 0;
        std::memcpy(&x, out[0].bytes.data() + lane * size, static_cast<std::size_t>(size));
        std::memcpy(&y, out[1].bytes.data() + lane * size, static_cast<std::size_t>(size));
        if (is_nan(d, x) && is_nan(d, y)) continue;  // payloads are not defined
        ASSERT_EQ(x, y) << a[r].spelling << " lane " << lane << " round " << round;
      }
    }
  }
}

TEST(InstructionSets, Avx2ComputesWhatPlainX86Does) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "the processor has no AVX2";
  compare_tables(isa_rows_base(), isa_rows_avx2());
}
TEST(InstructionSets, Avx512ComputesWhatPlainX86Does) {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq")) {
    GTEST_SKIP() << "the processor has no AVX-512";
  }
  compare_tables(isa_rows_base(), isa_rows_avx512());
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
