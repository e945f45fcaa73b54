#include "core/graph/small_float.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stitchwork {
namespace TEST_FILE {

constexpr DType kAll[] = {DType::kF4E2M1FN,      DType::kF8E8M0FNU, DType::kF8E3M4,
                          DType::kF8E4M3,        DType::kF8E4M3FN,  DType::kF8E4M3FNUZ,
                          DType::kF8E4M3B11FNUZ, DType::kF8E5M2,    DType::kF8E5M2FNUZ};

TEST(SmallFloat, EveryValueEncodesToItsOwnBits) {
  for (const DType type : kAll) {
    const SmallFloat format = small_float(type);
    for (int bits = 0; bits < 1 << bit_width(type); ++bits) {
      const double value = decode(format, static_cast<std::uint8_t>(bits));
      if (!std::isnan(value)) {
        EXPECT_EQ(encode(format, value), bits) << name(type);
      }
    }
  }
}

// The right-hand sides are what ml_dtypes 0.5 gives, which XLA's conversions are.
TEST(SmallFloat, RoundingOverflowAndSpecialValuesAreThoseOfMlDtypes) {
  struct Case {
    DType type;
    double value;
    int bits;
  };
  constexpr double kInf = HUGE_VAL;
  const double nan = std::nan("");
  const Case cases[] = {
      {DType::kF8E4M3FN, 464, 0x7e},      {DType::kF8E4M3FN, 465, 0x7f},
      {DType::kF8E4M3FN, -1e9, 0xff},     {DType::kF8E4M3FN, kInf, 0x7f},
      {DType::kF8E4M3FN, -1e-9, 0x80},    {DType::kF8E4M3FN, 247, 0x77},
      {DType::kF8E4M3, 247, 0x77},        {DType::kF8E4M3, 248, 0x78},
      {DType::kF8E4M3, nan, 0x7c},        {DType::kF8E4M3B11FNUZ, 1.5, 0x5c},
      {DType::kF8E4M3B11FNUZ, 232, 0x80}, {DType::kF8E4M3B11FNUZ, -0.0, 0},
      {DType::kF8E4M3FNUZ, 247, 0x7f},    {DType::kF8E4M3FNUZ, 248, 0x80},
      {DType::kF8E4M3FNUZ, -1e-9, 0},     {DType::kF8E3M4, 5, 0x54},
      {DType::kF8E3M4, 460, 0x70},        {DType::kF8E3M4, -nan, 0xf8},
      {DType::kF8E5M2, 460, 0x5f},        {DType::kF8E5M2, 58000, 0x7b},
      {DType::kF8E5M2, 61440, 0x7c},      {DType::kF8E5M2FNUZ, 58000, 0x7f},
      {DType::kF8E5M2FNUZ, 61440, 0x80},  {DType::kF8E5M2FNUZ, nan, 0x80},
      {DType::kF8E8M0FNU, 0, 0xff},       {DType::kF8E8M0FNU, 1.5, 0x80},
      {DType::kF8E8M0FNU, 3, 0x81},       {DType::kF8E8M0FNU, 1e9, 0x9d},
      {DType::kF8E8M0FNU, 1e-39, 0x00},   {DType::kF8E8M0FNU, -2, 0xff},
      {DType::kF4E2M1FN, 5, 0x6},         {DType::kF4E2M1FN, -1e9, 0xf},
      {DType::kF4E2M1FN, nan, 0x8},
  };
  for (const Case& c : cases)
    EXPECT_EQ(encode(small_float(c.type), c.value), c.bits) << name(c.type) << " " << c.value;
}

TEST(SmallFloat, WhatBecomesInfinityNanOrTheLargestDoesNotFit) {
  EXPECT_TRUE(fits(small_float(DType::kF8E4M3FN), 448));
  EXPECT_FALSE(fits(small_float(DType::kF8E4M3FN), 466));
  EXPECT_TRUE(fits(small_float(DType::kF4E2M1FN), -6.9));
  EXPECT_FALSE(fits(small_float(DType::kF4E2M1FN), 7.1));
  EXPECT_FALSE(fits(small_float(DType::kF8E8M0FNU), 0));
  EXPECT_TRUE(fits(small_float(DType::kF8E5M2), std::nan("")));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
