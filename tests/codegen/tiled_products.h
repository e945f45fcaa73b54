// Tiled products of drawn operands in the simulator, under all sanitizers, held to the host's.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "runtime/device_buffer.h"
#include "runtime/product_check.h"
#include "runtime/simulator_backend.h"
#include "runtime/tiled_products.h"

namespace stitchwork::testing {

/// Extents, strides of all kinds (transposed operands, rows apart, batches), by seed. `most`: of an extent.
inline Gemm drawn_gemm(std::uint32_t seed, std::int64_t most) {
  std::mt19937 random(seed);
  const auto draw = [&](std::int64_t least, std::int64_t greatest) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(greatest - least + 1));
  };
  Gemm gemm;
  gemm.m = draw(1, most);
  gemm.n = draw(1, most);
  gemm.k = draw(1, most);
  const auto lay_out = [&](std::int64_t rows, std::int64_t cols, std::int64_t& row, std::int64_t& col) {
    const bool transposed = draw(0, 1) == 1;
    row = transposed ? 1 : cols + draw(0, 3);
    col = transposed ? rows + draw(0, 3) : 1;
  };
  lay_out(gemm.m, gemm.k, gemm.a_row, gemm.a_col);
  lay_out(gemm.k, gemm.n, gemm.b_row, gemm.b_col);
  gemm.c_row = gemm.n + draw(0, 3);
  for (int loops = static_cast<int>(draw(0, 5)) - 3; loops > 0; --loops) {
    const ProductExtents one = extents_of(gemm);
    const auto stride = [&](std::int64_t of) { return of + draw(0, 2); };
    const std::int64_t a = draw(0, 3) == 0 ? 0 : stride(one.a);
    gemm.batch.insert(gemm.batch.begin(), {draw(1, 3), a, stride(one.b), stride(one.c)});
  }
  return gemm;
}

/// A product made in the simulator: what it gave, what the host gives, and what the sanitizers found.
struct TriedProduct {
  Literal made, right;
  std::vector<sim::Finding> findings;
  std::vector<Launched> launches;
};

/// With `kernels` as they are, or whatever stands for them.
inline TriedProduct tried_product(const Device& device, TiledKernels& kernels, const TypedGemm& product,
                                  const TiledProduct& by, std::uint64_t seed, bool accumulate = false) {
  SimulatorBackend backend(device, sim::CacheMode::kCold, sim::parse_sanitizers("mem,race,sync,init"), 0);
  const ProductExtents extents = extents_of(product.gemm);
  const Literal a = drawn_elements(extents.a, product.operands, 3 * seed),
                b = drawn_elements(extents.b, product.operands, 3 * seed + 1),
                c = drawn_elements(extents.c, product.result, 3 * seed + 2);
  const auto uploaded = [&](const Literal& values, const char* name) {
    DeviceBuffer buffer(backend, values.bytes.size(), name);
    backend.write(buffer.address(), values.bytes);
    return buffer;
  };
  const DeviceBuffer on_a = uploaded(a, "A"), on_b = uploaded(b, "B"), on_c = uploaded(c, "C");
  TriedProduct tried;
  tried.launches = make_product(backend, kernels, product, by,
                                {on_a.address(), on_b.address(), on_c.address()}, accumulate);
  for (const Launched& launched : tried.launches)
    tried.findings.insert(tried.findings.end(), launched.findings.begin(), launched.findings.end());
  tried.made = c;
  backend.read(on_c.address(), tried.made.bytes);
  tried.right = host_product(product.gemm, a, b, c, accumulate);
  return tried;
}

/// Nothing is wrong: "", or what is.
inline std::string wrong(const TriedProduct& tried) {
  if (!tried.findings.empty()) return tried.findings[0].message;
  return equal_elements(tried.right, tried.made).why;
}

}  // namespace stitchwork::testing
