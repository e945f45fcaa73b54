#include "codegen/gemm/tiled_product.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/base/arithmetic.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

/// From coarse ones, whose operands are read least often, to those that fill a device with small products.
/// The sizes are those of cuBLAS's names (occupancy_model/library.cpp). A thread has fewer outputs than the
/// 64 of CUTLASS's kernels, so that the warps of one block, or of two, keep an SM's schedulers busy even
/// where each instruction waits for the one before it, as the timing model has it (docs/timing.md).
constexpr ProductTile kTiles[] = {{128, 128, 8, 4}, {128, 64, 8, 4}, {64, 64, 4, 4}, {32, 32, 4, 4}};
/// The same as in occupancy_model/library.cpp.
constexpr int kSplits[] = {1, 2, 4, 8};
/// A choice, not measured: enough to fill any device; threads of larger results have several outputs.
constexpr std::int64_t kMostFoldBlocks = 65536;

std::uint64_t word(std::int64_t value) { return static_cast<std::uint64_t>(value); }

Gemm::Loop innermost(const Gemm& gemm) { return gemm.batch.empty() ? Gemm::Loop{} : gemm.batch.back(); }

/// The product of the batch's element whose matrices begin there, and all of the innermost loop's.
void add_launches(const Gemm& gemm, const TiledProduct& product, const ProductAddresses& at, bool accumulate,
                  std::vector<ProductLaunch>& launches) {
  const Gemm::Loop loop = innermost(gemm);
  const bool split = product.split > 1;
  ProductLaunch tiles;
  tiles.launch.block = product.tile.threads();
  tiles.launch.grid =
      ceil_div(gemm.m, product.tile.m) * ceil_div(gemm.n, product.tile.n) * product.split * loop.extent;
  SW_CHECK(tiles.launch.grid <= std::numeric_limits<std::int32_t>::max(), "{} tiles are no grid",
           tiles.launch.grid);
  tiles.arguments = {at.a,
                     at.b,
                     split ? at.partial : at.c,
                     word(gemm.m),
                     word(gemm.n),
                     word(gemm.k),
                     word(gemm.a_row),
                     word(gemm.a_col),
                     word(gemm.b_row),
                     word(gemm.b_col),
                     word(split ? gemm.n : gemm.c_row),
                     word(loop.a),
                     word(loop.b),
                     word(split ? gemm.m * gemm.n * product.split : loop.c),
                     word(product.split),
                     word(ceil_div(gemm.k, product.split)),
                     word(accumulate ? 1 : 0)};
  launches.push_back(std::move(tiles));
  if (!split) return;
  const std::int64_t outputs = gemm.m * gemm.n * loop.extent;
  ProductLaunch fold;
  fold.folds = true;
  fold.launch.block = kFoldBlock;
  fold.launch.grid = std::min(ceil_div(outputs, kFoldBlock), kMostFoldBlocks);
  fold.arguments = {at.c,
                    at.partial,
                    word(gemm.m),
                    word(gemm.n),
                    word(gemm.c_row),
                    word(loop.c),
                    word(loop.extent),
                    word(product.split),
                    word(accumulate ? 1 : 0)};
  launches.push_back(std::move(fold));
}

}  // namespace

std::string name(const TiledProduct& product) {
  const std::string tile = fmt::format("tiled-{}x{}", product.tile.m, product.tile.n);
  return product.split == 1 ? tile : fmt::format("{}/{}", tile, product.split);
}

const std::vector<TiledProduct>& tiled_products() {
  static const std::vector<TiledProduct> all = [] {
    std::vector<TiledProduct> list;
    for (const ProductTile& tile : kTiles)
      for (const int split : kSplits) list.push_back({tile, split});
    return list;
  }();
  return all;
}

std::optional<TiledProduct> tiled_product(std::string_view wanted) {
  for (const TiledProduct& product : tiled_products())
    if (name(product) == wanted) return product;
  return std::nullopt;
}

TiledProduct named_product(std::string_view wanted) {
  if (const std::optional<TiledProduct> product = tiled_product(wanted)) return *product;
  std::vector<std::string> known;
  for (const TiledProduct& product : tiled_products()) known.push_back(name(product));
  throw Error(fmt::format("there is no tiled product {}", wanted),
              fmt::format("known: {}", fmt::join(known, ", ")));
}

Verdict makes_product(DType operands, DType result) {
  const auto known = [](DType type) {
    return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
  };
  if (known(operands) && known(result)) return Verdict::yes();
  return Verdict::no("gemm.types", fmt::format("no tiled product of {} gives {}: f32, f16 and bf16 are made",
                                               name(operands), name(result)));
}

std::int64_t partial_sum_bytes(const Gemm& gemm, int split) {
  return split == 1 ? 0 : gemm.m * gemm.n * innermost(gemm).extent * split * byte_size(DType::kF32);
}

std::vector<ProductLaunch> product_launches(const Gemm& gemm, const TiledProduct& product, DType operands,
                                            DType result, const ProductAddresses& at, bool accumulate) {
  std::vector<ProductLaunch> launches;
  if (gemm.m == 0 || gemm.n == 0) return launches;
  for (const Gemm::Loop& loop : gemm.batch)
    if (loop.extent == 0) return launches;
  const std::size_t outer = gemm.batch.empty() ? 0 : gemm.batch.size() - 1;
  std::vector<std::int64_t> index(outer, 0);
  for (;;) {
    ProductAddresses here = at;
    for (std::size_t l = 0; l < outer; ++l) {
      here.a += word(index[l] * gemm.batch[l].a * byte_size(operands));
      here.b += word(index[l] * gemm.batch[l].b * byte_size(operands));
      here.c += word(index[l] * gemm.batch[l].c * byte_size(result));
    }
    add_launches(gemm, product, here, accumulate, launches);
    std::size_t l = outer;
    while (l > 0 && ++index[l - 1] == gemm.batch[l - 1].extent) index[--l] = 0;
    if (l == 0) return launches;
  }
}

}  // namespace stitchwork
