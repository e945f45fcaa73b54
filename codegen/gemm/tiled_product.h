// Our own matrix product: one thread block for each tile of the result, as CUDA C++ (docs/codegen.md).
//
// Extents, strides and pointers are arguments, 64-bit words all of them, so that a backend launches it like
// any other kernel: there is one source for each tile and pair of types.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/gemm.h"
#include "analysis/plan/plan.h"
#include "core/base/verdict.h"

namespace stitchwork {

/// Outputs of a block and how they are dealt: a thread has rows_each x cols_each of them.
struct ProductTile {
  int m = 0, n = 0;
  int rows_each = 0, cols_each = 0;
  int threads() const { return m / rows_each * (n / cols_each); }
};

/// A way to make a product: its tile, and how many blocks share a tile's k. With more than one of them their
/// partial sums go through memory, and a second kernel adds them in ascending order.
struct TiledProduct {
  ProductTile tile;
  int split = 1;
};
/// "tiled-128x64", "tiled-128x64/4" with k split 4 ways.
std::string name(const TiledProduct& product);
/// All there are: four tiles, k whole or split 2, 4 or 8 ways.
const std::vector<TiledProduct>& tiled_products();
/// By name; nothing where there is none of that name.
std::optional<TiledProduct> tiled_product(std::string_view name);
/// Likewise; throws Error where there is none.
TiledProduct named_product(std::string_view name);

/// Whether products of these types are made: f32, f16 and bf16, summed in f32 and rounded once to the
/// result's.
Verdict makes_product(DType operands, DType result);

/// CUDA C++ of `extern "C" __global__ void tiled_product(...)`.
std::string tiled_product_cuda(const ProductTile& tile, DType operands, DType result);
/// Threads of a block that folds.
/// A choice, not measured: whole warps, and several blocks an SM on every device.
inline constexpr int kFoldBlock = 256;
/// CUDA C++ of `extern "C" __global__ void fold(...)`, which adds the partial sums of a split product.
std::string fold_cuda(DType result);

/// Where the matrices begin, in device memory. `partial`: partial_sum_bytes there, for split products.
struct ProductAddresses {
  std::uint64_t a = 0, b = 0, c = 0, partial = 0;
};
std::int64_t partial_sum_bytes(const Gemm& gemm, int split);

/// One launch of the kernel `tiled_product`, or `fold`.
struct ProductLaunch {
  bool folds = false;
  KernelLaunch launch;
  std::vector<std::uint64_t> arguments;
};
/// What makes C = A B, or C + A B where it accumulates, in this order: for each combination of the outer
/// batch loops a launch, which makes the products of the innermost, and another that folds where k is split.
std::vector<ProductLaunch> product_launches(const Gemm& gemm, const TiledProduct& product, DType operands,
                                            DType result, const ProductAddresses& at,
                                            bool accumulate = false);

}  // namespace stitchwork
