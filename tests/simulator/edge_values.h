// Bit patterns at which instructions of a type tend to go wrong: zeros of both signs, subnormals, ties
// between numbers of narrower types, the largest and smallest numbers, infinities and NaNs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stitchwork::sim {

/// Of "f32", "f64", "h" (f16 and bf16), or integers of up to 64 bits.
inline const std::vector<std::uint64_t>& edge_values(const std::string& type) {
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

}  // namespace stitchwork::sim
