#include "core/hlo/hlo_literal.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/error.h"

namespace stitchwork {
namespace TEST_FILE {

Literal read(const std::string& text, const Shape& shape) {
  HloLexer lexer(text, "literal");
  Literal literal = read_literal(lexer, shape);
  lexer.skip();
  EXPECT_TRUE(lexer.at_end()) << text;
  return literal;
}

Literal scalar(const std::string& text, DType type) { return read(text, Shape::array(type, {})); }

float f32(const std::string& text) { return *scalar(text, DType::kF32).data<float>(); }

TEST(HloLiteral, FloatsAreReadToTheirNearestValue) {
  EXPECT_EQ(f32("3.30000019"), 3 * 1.1f);
  EXPECT_EQ(f32("-3.40282347e+38"), -3.40282347e+38f);
  EXPECT_EQ(f32("0x1.8p3"), 12.f);
  EXPECT_EQ(f32("+2"), 2.f);
  EXPECT_EQ(f32("1e-45"), std::bit_cast<float>(1u));
  EXPECT_EQ(f32("1e-60"), 0.f);
  EXPECT_TRUE(std::signbit(f32("-0")));
  EXPECT_EQ(f32("-inf"), -INFINITY);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(f32("nan")), 0x7fc00000u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(f32("-nan")), 0xffc00000u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(f32("nan(0x400001)")), 0x7fc00001u);
  EXPECT_THROW(f32("1e40"), Error);
  EXPECT_THROW(scalar("1e6", DType::kF16), Error);
  EXPECT_THROW(scalar("500", DType::kF8E4M3FN), Error);
  EXPECT_THROW(scalar("7.1", DType::kF4E2M1FN), Error);
  EXPECT_THROW(scalar("-1", DType::kF8E8M0FNU), Error);
  EXPECT_THROW(scalar("2", DType::kS2), Error);
}

TEST(HloLiteral, EveryFormPrintsAsItWasRead) {
  const auto array = [](DType type, std::vector<std::int64_t> dims) {
    return Shape::array(type, std::move(dims));
  };
  const std::pair<std::string, Shape> forms[] = {
      {"true", array(DType::kPred, {})},
      {"{1, 0}", array(DType::kPred, {2})},
      {"{}", array(DType::kF32, {0})},
      {"{ {0} }", array(DType::kS32, {1, 1})},
      {"{ { 0, 1.1 }, { 2.2, 3.30000019 } }", array(DType::kF32, {2, 2})},
      {"{ { {1}, {2} }, { {3}, {4} } }", array(DType::kS32, {2, 2, 1})},
      {"{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } } }, { /*i0=1*/ { /*i1=0*/ { 3, 4 } } } }",
       array(DType::kS32, {2, 1, 1, 2})},
      {"(1, -2.5)", array(DType::kC64, {})},
      {"{(1, 2), (3, 0.1)}", array(DType::kC128, {2})},
      {"(1, {2, 3})", Shape::tuple({array(DType::kF32, {}), array(DType::kS32, {2})})},
      {"{-8, 7}", array(DType::kS4, {2})},
      {"{-2, 1}", array(DType::kS2, {2})},
      {"{0, 3}", array(DType::kU2, {2})},
      {"18446744073709551615", array(DType::kU64, {})},
      {"-9223372036854775808", array(DType::kS64, {})},
      {"0.10000000000000001", array(DType::kF64, {})},
      {"4.94065645841247e-324", array(DType::kF64, {})},
      {"{0.3333, 6.104e-05, inf}", array(DType::kF16, {3})},
      {"{0.3333, 3.39e+38}", array(DType::kBF16, {2})},
      {"{0.312, 448, -0.00195, nan}", array(DType::kF8E4M3FN, {4})},
      {"{0.31, 5.7e+04, -inf}", array(DType::kF8E5M2, {3})},
  };
  for (const auto& [text, shape] : forms) {
    if (text == "0.10000000000000001") {
      EXPECT_EQ(to_text(read(text, shape)), "0.1");
      continue;
    }
    const Literal literal = read(text, shape);
    EXPECT_TRUE(read(to_text(literal), shape) == literal) << text;
    if (shape.dtype == DType::kF16 || shape.dtype == DType::kBF16) continue;
    EXPECT_EQ(to_text(literal), text);
  }
}

TEST(HloLiteral, EveryEightBitFloatReadsBackToItsBits) {
  for (const DType type :
       {DType::kF4E2M1FN, DType::kF8E8M0FNU, DType::kF8E3M4, DType::kF8E4M3, DType::kF8E4M3FN,
        DType::kF8E4M3FNUZ, DType::kF8E4M3B11FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ}) {
    for (int bits = 0; bits < 1 << bit_width(type); ++bits) {
      Literal literal = scalar("1", type);
      literal.bytes[0] = static_cast<std::byte>(bits);
      const std::string text = to_text(literal);
      if (text == "nan" || text == "-nan") continue;  // several encodings, one spelling
      EXPECT_TRUE(scalar(text, type) == literal) << name(type) << " " << text;
    }
  }
}

TEST(HloLiteral, EverySixteenBitFloatReadsBackToItsBits) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    for (int bits = 0; bits < 65536; ++bits) {
      Literal literal = scalar("0", type);
      const auto half = static_cast<std::uint16_t>(bits);
      std::memcpy(literal.bytes.data(), &half, sizeof half);
      const std::string text = to_text(literal);
      if (text.ends_with("nan")) continue;
      ASSERT_TRUE(scalar(text, type) == literal) << name(type) << " " << text;
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
