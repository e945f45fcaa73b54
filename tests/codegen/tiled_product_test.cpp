// Matrix products by tiles: what they compute, whatever the extents, strides, types and splits.
#include "codegen/gemm/tiled_product.h"

#include <gtest/gtest.h>

#include "tests/codegen/harness.h"
#include "tests/codegen/tiled_products.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::tried_product;

const Device& target() { return device("v100"); }

Gemm plain(std::int64_t m, std::int64_t n, std::int64_t k) {
  Gemm gemm;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.a_row = k;
  gemm.b_row = n;
  gemm.c_row = n;
  gemm.a_col = gemm.b_col = 1;
  return gemm;
}

TEST(TiledProduct, NamesAreTilesAndSplits) {
  std::vector<std::string> names;
  for (const TiledProduct& product : tiled_products()) {
    names.push_back(name(product));
    ASSERT_TRUE(tiled_product(names.back()).has_value()) << names.back();
    EXPECT_EQ(name(*tiled_product(names.back())), names.back());
  }
  EXPECT_EQ(names.size(), 16u);
  EXPECT_EQ(names[0], "tiled-128x128");
  EXPECT_EQ(names[6], "tiled-128x64/4");
  EXPECT_FALSE(tiled_product("tiled-16x16").has_value());
  EXPECT_FALSE(tiled_product("library").has_value());
}

TEST(TiledProduct, IsMadeOfFloatsThatSumInF32) {
  EXPECT_TRUE(makes_product(DType::kF32, DType::kF32).ok);
  EXPECT_TRUE(makes_product(DType::kBF16, DType::kF32).ok);
  EXPECT_TRUE(makes_product(DType::kF32, DType::kF16).ok);
  EXPECT_FALSE(makes_product(DType::kF64, DType::kF64).ok);
  EXPECT_EQ(makes_product(DType::kS32, DType::kS32).why,
            "no tiled product of s32 gives s32: f32, f16 and bf16 are made");
}

TEST(TiledProduct, EveryTileSplitAndTypeIsRightWhereNothingDivides) {
  SKIP_WITHOUT_COMPILER();
  TiledKernels kernels(target());
  const std::pair<DType, DType> types[] = {{DType::kF32, DType::kF32},
                                           {DType::kF16, DType::kF16},
                                           {DType::kBF16, DType::kBF16},
                                           {DType::kBF16, DType::kF32},
                                           {DType::kF32, DType::kF16}};
  std::uint32_t seed = 0;
  for (const TiledProduct& by : tiled_products())
    for (const auto& [operands, result] : types) {
      const TypedGemm product{testing::drawn_gemm(++seed, 70), operands, result};
      EXPECT_EQ(testing::wrong(tried_product(target(), kernels, product, by, seed, seed % 3 == 0)), "")
          << name(by) << " " << name(operands) << " seed " << seed;
    }
}

TEST(TiledProduct, OfOneElementOfKOfNoneAndOfWholeTiles) {
  SKIP_WITHOUT_COMPILER();
  TiledKernels kernels(target());
  for (const Gemm& gemm : {plain(1, 1, 1), plain(3, 5, 0), plain(64, 128, 16), plain(1, 200, 9)})
    for (const char* by : {"tiled-64x64", "tiled-32x32/8"}) {
      const TypedGemm product{gemm};
      EXPECT_EQ(testing::wrong(tried_product(target(), kernels, product, *tiled_product(by), 7)), "")
          << by << " " << gemm.m << "x" << gemm.n << "x" << gemm.k;
    }
}

/// Partial sums have fixed places and an order: no atomics, whatever runs first.
TEST(TiledProduct, SplitSumsAreTheSameBitsOnAnyNumberOfHostThreads) {
  SKIP_WITHOUT_COMPILER();
  TiledKernels kernels(target());
  const TypedGemm product{plain(40, 50, 333)};
  const TiledProduct by = *tiled_product("tiled-32x32/4");
  std::vector<std::byte> first;
  for (const int threads : {1, 2, 7}) {
    SimulatorBackend backend(target(), sim::CacheMode::kCold, {}, threads);
    Literal a = Literal::zeros(Shape::array(DType::kF32, {40 * 333})),
            b = Literal::zeros(Shape::array(DType::kF32, {333 * 50})),
            c = Literal::zeros(Shape::array(DType::kF32, {40 * 50}));
    for (std::int64_t i = 0; i < 40 * 333; ++i) a.set_double(i, 1.0 / static_cast<double>(i + 1));
    for (std::int64_t i = 0; i < 333 * 50; ++i) b.set_double(i, 1.0 / static_cast<double>(i % 97 + 3));
    const DeviceBuffer on_a(backend, a.bytes.size(), "A"), on_b(backend, b.bytes.size(), "B"),
        on_c(backend, c.bytes.size(), "C");
    backend.write(on_a.address(), a.bytes);
    backend.write(on_b.address(), b.bytes);
    const auto launched =
        make_product(backend, kernels, product, by, {on_a.address(), on_b.address(), on_c.address()});
    ASSERT_EQ(launched.size(), 2u);
    for (const Launched& one : launched) EXPECT_EQ(one.counters.atomics, 0u);
    backend.read(on_c.address(), c.bytes);
    if (first.empty()) first = c.bytes;
    EXPECT_EQ(c.bytes, first) << threads;
  }
}

TEST(TiledProduct, HasOneLaunchForEachOfTheOuterBatchesAndAFoldWhereKIsSplit) {
  Gemm gemm = plain(100, 200, 300);
  gemm.batch = {{3, 30000, 60000, 20000}, {5, 90000, 180000, 60000}};
  const auto whole = product_launches(gemm, *tiled_product("tiled-64x64"), DType::kF16, DType::kF16,
                                      {.a = 1000, .b = 2000, .c = 3000});
  ASSERT_EQ(whole.size(), 3u);
  EXPECT_EQ(whole[0].launch.grid, 2 * 4 * 5);
  EXPECT_EQ(whole[0].launch.block, 256);
  EXPECT_EQ(whole[2].arguments[0], 1000u + 2 * 30000 * 2);
  EXPECT_EQ(whole[2].arguments[2], 3000u + 2 * 20000 * 2);
  const auto split = product_launches(gemm, *tiled_product("tiled-64x64/2"), DType::kF16, DType::kF16, {});
  ASSERT_EQ(split.size(), 6u);
  EXPECT_EQ(split[0].launch.grid, 2 * 4 * 5 * 2);
  EXPECT_TRUE(split[1].folds);
  EXPECT_EQ(partial_sum_bytes(gemm, 2), 100 * 200 * 5 * 2 * 4);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
