// What jax.lax.rng_bit_generator gives on a CPU (JAX 0.10) for the state [0x0123456789abcdef,
// 0xfedcba9876543210].
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr std::uint64_t kKey = 0x0123456789abcdef, kCounter = 0xfedcba9876543210;

std::vector<Literal> bits(const std::string& shape, const std::string& algorithm,
                          const std::vector<std::uint64_t>& state = {kKey, kCounter}) {
  const Graph graph =
      parse_hlo(fmt::format("HloModule m\nENTRY e {{ s = u64[{0}] parameter(0)\n  ROOT r = (u64[{0}], {1}) "
                            "rng-bit-generator(s), algorithm={2} }}",
                            state.size(), shape, algorithm),
                "test.hlo");
  Literal input = Literal::zeros(Shape::array(DType::kU64, {static_cast<std::int64_t>(state.size())}));
  std::copy(state.begin(), state.end(), input.data<std::uint64_t>());
  return evaluate(graph, {&input, 1});
}

template <typename T>
std::vector<T> values(const Literal& literal) {
  return {literal.data<T>(), literal.data<T>() + literal.shape.elements_count()};
}

TEST(RandomBits, PhiloxGivesTheBitsOfJax) {
  for (const char* algorithm : {"rng_philox", "rng_default"}) {
    const auto words = bits("u32[3,3]", algorithm);
    EXPECT_EQ(values<std::uint64_t>(words[0]), (std::vector<std::uint64_t>{kKey, 18364758544493064723u}));
    EXPECT_EQ(values<std::uint32_t>(words[1]),
              (std::vector<std::uint32_t>{516242754, 3483603125, 4062402306, 3877632279, 3410436889,
                                          3598874490, 2694609816, 810459017, 2674122057}));
    EXPECT_EQ(values<std::uint64_t>(bits("u64[2,3]", algorithm)[1]),
              (std::vector<std::uint64_t>{14961961494634642754u, 16654303828281349890u, 15457048240369115929u,
                                          3480894975457917848u, 4475342623592406345u, 2219790398950453967u}));
    EXPECT_EQ(values<std::uint8_t>(bits("u8[5]", algorithm)[1]),
              (std::vector<std::uint8_t>{66, 181, 2, 23, 25}));
    EXPECT_EQ(values<std::uint32_t>(bits("u32[]", algorithm)[1]), (std::vector<std::uint32_t>{516242754}));
  }
}

TEST(RandomBits, ThreeFryGivesTheBitsOfJax) {
  const auto words = bits("u32[3,3]", "rng_three_fry");
  EXPECT_EQ(values<std::uint64_t>(words[0]), (std::vector<std::uint64_t>{kKey, 18364758544493064726u}));
  EXPECT_EQ(values<std::uint32_t>(words[1]),
            (std::vector<std::uint32_t>{2933171071, 3284946178, 2934253134, 288411921, 2039365678, 2961824378,
                                        1236338088, 3907330576, 4037253752}));
  const auto wide = bits("u64[2,3]", "rng_three_fry");
  EXPECT_EQ(values<std::uint64_t>(wide[0])[1], 18364758544493064726u);
  EXPECT_EQ(
      values<std::uint64_t>(wide[1]),
      (std::vector<std::uint64_t>{1238719771404706687u, 8759008894879812866u, 12720938842939795022u,
                                  12613049395910346152u, 15990383982464541200u, 15931640804354005624u}));
  EXPECT_EQ(values<std::uint8_t>(bits("u8[5]", "rng_three_fry")[1]),
            (std::vector<std::uint8_t>{127, 17, 2, 46, 78}));
  EXPECT_EQ(values<std::uint16_t>(bits("u16[2,2]", "rng_three_fry")[1]),
            (std::vector<std::uint16_t>{41855, 19714, 53521, 16430}));
  EXPECT_EQ(values<std::uint32_t>(bits("u32[]", "rng_three_fry")[1]),
            (std::vector<std::uint32_t>{2933171071}));
}

TEST(RandomBits, TheCounterOfPhiloxCarriesIntoItsUpperHalf) {
  const auto drawn = bits("u32[8]", "rng_philox", {kKey, ~std::uint64_t{0}, 5});
  EXPECT_EQ(values<std::uint64_t>(drawn[0]), (std::vector<std::uint64_t>{kKey, 1, 6}));
  // The second draw is the first of the counter that follows.
  const auto next = bits("u32[4]", "rng_philox", {kKey, 0, 6});
  const auto all = values<std::uint32_t>(drawn[1]);
  EXPECT_EQ(std::vector<std::uint32_t>(all.begin() + 4, all.end()), values<std::uint32_t>(next[1]));
}

TEST(RandomBits, OfAStateThatDoesNotFitAreRefused) {
  EXPECT_THROW(bits("u32[4]", "rng_three_fry", {1, 2, 3}), Error);
  EXPECT_THROW(bits("f32[4]", "rng_philox"), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
