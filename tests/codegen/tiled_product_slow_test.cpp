// Tiled products of both compilers, for old and new devices, of drawn extents and strides; broken ones.
#include <gtest/gtest.h>

#include "tests/codegen/harness.h"
#include "tests/codegen/tiled_products.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

TEST(TiledProducts, OfBothCompilersAreRightFromSm70ToSm90) {
  std::uint32_t seed = 1000;
  for (const std::string& compiler : testing::installed_compilers())
    for (const char* id : {"v100", "a100-sxm-40", "h100-sxm"}) {
      const Device& target = device(id);
      CompileOptions options;
      options.compiler = compiler;
      TiledKernels kernels(target, options);
      for (const TiledProduct& by : tiled_products())
        for (const DType type : kTypes) {
          const TypedGemm product{testing::drawn_gemm(++seed, 150), type, type};
          EXPECT_EQ(testing::wrong(testing::tried_product(target, kernels, product, by, seed, seed % 2 == 0)),
                    "")
              << compiler << " " << id << " " << name(by) << " " << name(type) << " seed " << seed;
        }
    }
}

TEST(TiledProducts, OfManyDrawnExtentsAndStridesAreRight) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  TiledKernels kernels(target);
  for (std::uint32_t seed = 1; seed <= 600; ++seed) {
    const TiledProduct by = tiled_products()[seed % tiled_products().size()];
    const DType operands = kTypes[seed / 7 % 3];
    const DType result = seed % 5 == 0 ? DType::kF32 : operands;
    const TypedGemm product{testing::drawn_gemm(seed, seed % 20 == 0 ? 400 : 90), operands, result};
    EXPECT_EQ(testing::wrong(testing::tried_product(target, kernels, product, by, seed, seed % 3 == 0)), "")
        << name(by) << " " << name(operands) << " seed " << seed;
  }
}

/// One wrong line in a kernel, at one of its places.
struct Mutant {
  const char* of;  ///< entry
  std::string from, to;
  int occurrence = 0;
};

std::string mutated(std::string text, const Mutant& mutant) {
  std::size_t at = text.find(mutant.from);
  for (int n = 0; n < mutant.occurrence && at != std::string::npos; ++n) at = text.find(mutant.from, at + 1);
  EXPECT_NE(at, std::string::npos) << mutant.from;
  if (at != std::string::npos) text.replace(at, mutant.from.size(), mutant.to);
  return text;
}

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = {
      {"tiled_product", "__syncthreads();", "", 0},
      {"tiled_product", "__syncthreads();", "", 1},
      {"tiled_product", "along + e * along_each < most_along && ", ""},
      {"tiled_product", " && deep + e * deep_each < most_deep", ""},
      {"tiled_product", "if (row >= m) continue;", ""},
      {"tiled_product", "if (col >= n) continue;", ""},
      {"tiled_product", "buffer ^= 1;", ""},
      {"tiled_product", "sums[i][j] = 0.0f", "sums[i][j] = 1.0f"},
      {"tiled_product", "first_k + (int)k_each, k)", "first_k + (int)k_each + 1, k)"},
      {"tiled_product", "+ (long long)part * m * n", ""},
      {"tiled_product", "batch * c_each + row", "row"},
      {"tiled_product", "a + batch * a_each", "a"},
      {"tiled_product", "k_stride == 1", "k_stride != 1"},
      {"tiled_product", "at += from_step;", ""},
      {"tiled_product", "if (accumulate) ", ""},
      {"fold", "int part = 1", "int part = 2"},
      {"fold", "part < (int)splits", "part <= (int)splits"},
      {"fold", "batch * splits * outputs", "batch * outputs"},
      {"fold", "if (accumulate) ", ""},
      {"fold", "i < all", "i < all - 1"}};
  return all;
}

/// Some product tells of each mutant: a sanitizer, or the comparison. Running along the other side of a
/// transposed operand is as right, only slower.
TEST(TiledProducts, BrokenOnesAreNoticed) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  for (const Mutant& mutant : mutants()) {
    const bool folds = std::string_view(mutant.of) == "fold";
    bool noticed = false;
    for (std::uint32_t seed = 1; seed <= 24 && !noticed; ++seed) {
      const TiledProduct by = *tiled_product(seed % 2 == 0 && !folds ? "tiled-32x32" : "tiled-32x32/4");
      const TypedGemm product{testing::drawn_gemm(seed, 80)};
      const bool accumulate = seed % 3 == 0;
      TiledKernels kernels(target, {}, [&](const std::string& entry, const std::string& cuda) {
        return entry == mutant.of ? mutated(cuda, mutant) : cuda;
      });
      const auto tried = testing::tried_product(target, kernels, product, by, seed, accumulate);
      noticed = !testing::wrong(tried).empty();
    }
    const bool as_right = mutant.from == "k_stride == 1";
    EXPECT_EQ(noticed, !as_right) << mutant.of << ": " << mutant.from << " " << mutant.occurrence;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
