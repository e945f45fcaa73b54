// CUDA C++ programs (tests/simulator/cuda) as nvcc and clang compile them: right under both, clean under
// every sanitizer, and with the counters their access patterns ask for.
#include "tests/simulator/cuda_programs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace cuda_programs;

TEST_P(CudaProgram, BlockReductionAddsEachBlock) {
  const ptx::Module module = compile("block_reduction");
  const int n = 5000;
  std::vector<float> x(n);
  for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % 97) * 0.5f;
  DeviceAddress sums = 0;
  run_clean(module, "block_reduction", [&] {
    return Launch{.kernel = "",
                  .grid = {20, 1, 1},
                  .block = {256, 1, 1},
                  .arguments = {give(x, "x"), room(80, "sums", &sums), Argument::i32(n)}};
  });
  const auto got = download<float>(memory, sums, 20);
  for (int b = 0; b < 20; ++b) {
    double sum = 0;
    for (int i = b * 256; i < std::min(n, (b + 1) * 256); ++i) sum += x[static_cast<std::size_t>(i)];
    EXPECT_EQ(got[static_cast<std::size_t>(b)], sum);
  }
}

TEST_P(CudaProgram, BlockScanGivesExclusivePrefixSums) {
  const ptx::Module module = compile("block_scan");
  const auto x = scrambled(2048, 1000);
  DeviceAddress y = 0;
  run_clean(module, "block_scan", [&] {
    return Launch{.kernel = "",
                  .grid = {4, 1, 1},
                  .block = {256, 1, 1},
                  .arguments = {give(x, "x"), room(8192, "y", &y)}};
  });
  const auto got = download<int>(memory, y, 2048);
  for (std::size_t b = 0; b < 2048; b += 512) {
    int sum = 0;
    for (std::size_t i = b; i < b + 512; sum += x[i++]) ASSERT_EQ(got[i], sum) << i;
  }
}

TEST_P(CudaProgram, TransposeConflictsInAllBanksUnlessPadded) {
  const ptx::Module module = compile("transpose");
  const std::uint32_t n = 128;
  std::vector<float> x(std::size_t{n} * n);
  std::iota(x.begin(), x.end(), 0.0f);
  DeviceAddress y = 0;
  for (const bool padded : {false, true}) {
    const Counters c = run_clean(module, padded ? "transpose_padded" : "transpose", [&] {
      return Launch{.kernel = "",
                    .grid = {n / 32, n / 32, 1},
                    .block = {32, 8, 1},
                    .arguments = {give(x, "x"), room(x.size() * 4, "y", &y), Argument::i32(n)}};
    });
    const auto got = download<float>(memory, y, x.size());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) ASSERT_EQ(got[i * n + j], x[j * n + i]);
    // Each of the n*n/32 warp-level reads of a column takes 32 wavefronts, 31 more than one.
    EXPECT_EQ(c.shared_bank_conflicts, padded ? 0u : n * n / 32 * 31);
    EXPECT_EQ(c.gld_transactions, n * n * 4 / 32);
    EXPECT_EQ(c.gst_transactions, n * n * 4 / 32);
  }
}

TEST_P(CudaProgram, TiledGemmMultipliesMatrices) {
  const ptx::Module module = compile("tiled_gemm");
  const std::uint32_t n = 64;
  std::vector<float> a(std::size_t{n} * n), b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 13) - 6;
    b[i] = static_cast<float>(i % 7) - 3;
  }
  DeviceAddress c = 0;
  const Counters counters = run_clean(module, "tiled_gemm", [&] {
    return Launch{.kernel = "",
                  .grid = {n / 16, n / 16, 1},
                  .block = {16, 16, 1},
                  .arguments = {give(a, "a"), give(b, "b"), room(a.size() * 4, "c", &c), Argument::i32(n)}};
  });
  const auto got = download<float>(memory, c, a.size());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      ASSERT_EQ(got[i * n + j], sum);
    }
  }
  EXPECT_EQ(counters.block_barriers, (n / 16) * (n / 16) * (n / 16) * 2);
  EXPECT_EQ(counters.inst_fp_32, std::uint64_t{n} * n * n);  // one fma each
}

TEST_P(CudaProgram, HistogramCountsEveryByte) {
  const ptx::Module module = compile("histogram");
  const int n = 30000;
  std::vector<std::uint8_t> x;
  for (int v : scrambled(n, 256)) x.push_back(static_cast<std::uint8_t>(v * v / 256));
  std::vector<std::uint32_t> expected(256);
  for (std::uint8_t v : x) ++expected[v];
  DeviceAddress bins = 0;
  const Counters c = run_clean(module, "histogram", [&] {
    return Launch{
        .kernel = "",
        .grid = {8, 1, 1},
        .block = {256, 1, 1},
        .arguments = {give(x, "x"), give(std::vector<std::uint32_t>(256), "bins", &bins), Argument::i32(n)}};
  });
  EXPECT_EQ(download<std::uint32_t>(memory, bins, 256), expected);
  EXPECT_GT(c.atomics, static_cast<std::uint64_t>(n));
}

TEST_P(CudaProgram, BitonicSortSortsEachBlock) {
  const ptx::Module module = compile("bitonic_sort");
  auto x = scrambled(3072, 1 << 20);
  DeviceAddress keys = 0;
  run_clean(module, "bitonic_sort", [&] {
    return Launch{.kernel = "", .grid = {3, 1, 1}, .block = {1024, 1, 1}, .arguments = {give(x, "x", &keys)}};
  });
  const auto got = download<int>(memory, keys, x.size());
  for (std::ptrdiff_t b = 0; b < 3072; b += 1024) std::sort(x.begin() + b, x.begin() + b + 1024);
  EXPECT_EQ(got, x);
}

TEST_P(CudaProgram, GridBarrierOrdersTheStepsOfAllBlocks) {
  const ptx::Module module = compile("grid_barrier");
  const int n = 3000, steps = 5;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i % 64);
  DeviceAddress result = 0;
  const Counters c = run_clean(module, "jacobi", [&] {
    const Argument a = give(x, "a");
    return Launch{.kernel = "",
                  .grid = {12, 1, 1},
                  .block = {128, 1, 1},
                  .arguments = {a, give(y, "b", &result), Argument::i32(n), Argument::i32(steps),
                                give(std::vector<std::uint32_t>(1), "arrived")}};
  });
  auto from = x;
  for (int s = 0; s < steps; ++s) {
    for (std::size_t i = 0; i < from.size(); ++i)
      y[i] = 0.25f * (i > 0 ? from[i - 1] : 0) + 0.5f * from[i] +
             0.25f * (i + 1 < from.size() ? from[i + 1] : 0);
    from = y;
  }
  const auto got = download<float>(memory, result, static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(got[i], y[i], 1e-4f) << i;
  EXPECT_GE(c.grid_barriers, static_cast<std::uint64_t>(steps));  // volatile data counts as waiting too
}

TEST_P(CudaProgram, WarpScanGivesInclusivePrefixSums) {
  const ptx::Module module = compile("warp_scan");
  const auto x = scrambled(1024, 100);
  DeviceAddress y = 0;
  run_clean(module, "warp_scan", [&] {
    return Launch{.kernel = "",
                  .grid = {2, 1, 1},
                  .block = {512, 1, 1},
                  .arguments = {give(x, "x"), room(4096, "y", &y)}};
  });
  const auto got = download<int>(memory, y, 1024);
  for (std::size_t b = 0; b < 1024; b += 512) {
    int sum = 0;
    for (std::size_t i = b; i < b + 512; ++i) ASSERT_EQ(got[i], sum += x[i]) << i;
  }
}

/// Philox4x32-10, its first word of counter {i, 0, 0, 0} and key {seed, 0}.
std::uint32_t philox_first(std::uint32_t i, std::uint32_t seed) {
  std::uint32_t c[4] = {i, 0, 0, 0}, k0 = seed, k1 = 0;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    const std::uint32_t x0 = static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0,
                        x2 = static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1;
    c[0] = x0;
    c[1] = static_cast<std::uint32_t>(b);
    c[2] = x2;
    c[3] = static_cast<std::uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c[0];
}

TEST_P(CudaProgram, MonteCarloDrawsPhiloxNumbersAndFindsPi) {
  const ptx::Module module = compile("monte_carlo");
  const std::uint32_t threads = 2048;
  const int points = 64;
  DeviceAddress inside = 0, first = 0;
  run_clean(module, "monte_carlo", [&] {
    return Launch{.kernel = "",
                  .grid = {threads / 128, 1, 1},
                  .block = {128, 1, 1},
                  .arguments = {give(std::vector<std::uint32_t>(1), "inside", &inside),
                                room(threads * 4, "first", &first), Argument::i32(points), Argument::i32(7)}};
  });
  const auto words = download<std::uint32_t>(memory, first, threads);
  for (std::uint32_t i = 0; i < threads; ++i) ASSERT_EQ(words[i], philox_first(i, 7)) << i;
  const double hits = download<std::uint32_t>(memory, inside, 1)[0];
  EXPECT_NEAR(4 * hits / (threads * points), 3.14159, 0.02);  // four standard deviations
}

struct Node {
  int key, left, right;
};
int build(std::vector<Node>& nodes, const std::vector<int>& sorted, std::size_t first, std::size_t last) {
  if (first == last) return -1;
  // Lopsided on purpose, so that paths differ in length.
  const std::size_t middle = first + (last - first) / 3;
  const std::size_t at = nodes.size();
  nodes.push_back({sorted[middle], -1, -1});
  const int left = build(nodes, sorted, first, middle), right = build(nodes, sorted, middle + 1, last);
  nodes[at].left = left;
  nodes[at].right = right;
  return static_cast<int>(at);
}

TEST_P(CudaProgram, TreeWalkFindsKeysOnDivergentPaths) {
  const ptx::Module module = compile("tree_walk");
  std::vector<int> sorted(700);
  for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<int>(3 * i);
  std::vector<Node> nodes;
  build(nodes, sorted, 0, sorted.size());
  const int n = 500, width = 40;
  const auto keys = scrambled(n, 2200);
  DeviceAddress depths = 0, counts = 0;
  run_clean(module, "tree_walk", [&] {
    const Argument tree = give(nodes, "nodes"), wanted = give(keys, "keys");
    return Launch{.kernel = "",
                  .grid = {4, 1, 1},
                  .block = {128, 1, 1},
                  .arguments = {tree, wanted, room(n * 4, "depths", &depths), room(n * 4, "counts", &counts),
                                Argument::i32(n), Argument::i32(width)}};
  });
  const auto depth = download<int>(memory, depths, n), count = download<int>(memory, counts, n);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    int at = 0, steps = 0;
    while (at >= 0 && nodes[static_cast<std::size_t>(at)].key != keys[i]) {
      const Node& node = nodes[static_cast<std::size_t>(at)];
      at = keys[i] < node.key ? node.left : node.right;
      ++steps;
    }
    ASSERT_EQ(depth[i], at >= 0 ? steps : -steps) << i;
    const auto in_range = [&](int key) { return key >= keys[i] && key < keys[i] + width; };
    ASSERT_EQ(count[i], std::count_if(sorted.begin(), sorted.end(), in_range)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Compilers, CudaProgram,
                         ::testing::Values(Compiler::kNvcc75, Compiler::kNvcc120, Compiler::kClang75),
                         [](const auto& tested) {
                           return tested.param == Compiler::kNvcc75    ? "NvccSm75"
                                  : tested.param == Compiler::kNvcc120 ? "NvccSm120"
                                                                       : "ClangSm75";
                         });

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
