// CUDA C++ programs (tests/simulator/cuda) as nvcc and clang compile them: right under both, clean under
// every sanitizer, and with the counters their access patterns ask for.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/simulator/cuda_sources.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

enum class Compiler { kNvcc75, kNvcc90, kNvcc120, kClang75 };

class CudaProgram : public ::testing::TestWithParam<Compiler> {
 protected:
  void SetUp() override {
    const char* program = GetParam() == Compiler::kClang75 ? "clang" : "nvcc";
    if (!on_path(program)) GTEST_SKIP() << program << " is not installed";
  }

  static ptx::Module compile(const std::string& name) { return compile(name, GetParam(), ""); }
  static ptx::Module compile(const std::string& name, Compiler compiler, const std::string& options) {
    std::string command;
    if (compiler == Compiler::kClang75)
      command =
          "clang -x cuda --cuda-device-only -nocudainc -nocudalib -std=c++17 -O3 -fms-extensions "
          "-Wno-everything -Xclang -target-feature -Xclang +ptx63 --cuda-gpu-arch=sm_75 -S";
    else
      command = fmt::format("nvcc -ptx -lineinfo -arch=sm_{}", compiler == Compiler::kNvcc75   ? 75
                                                               : compiler == Compiler::kNvcc90 ? 90
                                                                                               : 120);
    return compiled(name, command + " " + options);
  }

  /// Without sanitizers and with all of them: the counters must be the same.
  template <class Launch_>
  Counters run_clean(const ptx::Module& module, const std::string& kernel, Launch_ make) {
    Counters plain;
    for (const bool sanitized : {false, true}) {
      memory = DeviceMemory(true);
      Launch launch = make();
      launch.kernel = kernel;
      Options options;
      options.sanitize = {.race = sanitized, .init = sanitized};
      const LaunchResult r = run(module, launch, memory, device(target), options);
      EXPECT_TRUE(r.findings.empty()) << (r.findings.empty() ? "" : r.findings[0].message);
      if (sanitized)
        EXPECT_EQ(counter_list(r.counters), counter_list(plain));
      else
        plain = r.counters;
    }
    return plain;
  }
  template <class T>
  Argument give(const std::vector<T>& data, const char* name, DeviceAddress* address = nullptr) {
    const DeviceAddress a = upload(memory, data, name);
    if (address != nullptr) *address = a;
    return Argument::pointer(a);
  }
  Argument room(std::size_t bytes, const char* name, DeviceAddress* address) {
    *address = memory.allocate(bytes, name);
    return Argument::pointer(*address);
  }

  DeviceMemory memory;
  std::string target = "v100";
};
/// Programs that need sm_90.
class CudaProgram90 : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    target = "h100";
  }
};

std::vector<int> scrambled(int n, int range) {
  std::vector<int> x(static_cast<std::size_t>(n));
  std::uint32_t state = 12345;
  for (int& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<int>((state >> 8) % static_cast<std::uint32_t>(range));
  }
  return x;
}

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

TEST_P(CudaProgram90, ClusterHistogramCountsInTheMemoryOfAllItsBlocks) {
  const ptx::Module module = compile("clusters");
  const int n = 20000, per_block = 96;
  for (const std::uint32_t blocks : {2u, 8u}) {
    const int bins = per_block * static_cast<int>(blocks);
    const auto x = scrambled(n, bins);
    DeviceAddress y = 0;
    const Counters c = run_clean(module, "cluster_histogram", [&] {
      return Launch{
          .kernel = "",
          .grid = {16, 1, 1},
          .block = {128, 1, 1},
          .cluster = Dim3{blocks, 1, 1},
          .dynamic_shared_bytes = per_block * 4,
          .arguments = {give(x, "x"), give(std::vector<int>(static_cast<std::size_t>(bins)), "bins", &y),
                        Argument::i32(n), Argument::i32(per_block)}};
    });
    const auto got = download<int>(memory, y, static_cast<std::size_t>(bins));
    for (int b = 0; b < bins; ++b)
      ASSERT_EQ(got[static_cast<std::size_t>(b)], std::count(x.begin(), x.end(), b)) << b;
    EXPECT_EQ(c.cluster_barriers, 32u);
    EXPECT_EQ(c.atomics, static_cast<std::uint64_t>(n + 16 * per_block));
    EXPECT_EQ(c.remote_shared_requests, static_cast<std::uint64_t>(n / 32))
        << "every warp meets another block's bins";
  }
}

TEST_P(CudaProgram90, ClusterRowsAreNormalisedByAllTheirBlocks) {
  const ptx::Module module = compile("clusters");
  std::vector<float> x(12 * 256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(1 + i % 7);
  DeviceAddress y = 0;
  const Counters c = run_clean(module, "cluster_normalise", [&] {
    return Launch{.kernel = "",
                  .grid = {12, 1, 1},
                  .block = {256, 1, 1},
                  .arguments = {give(x, "x"), room(x.size() * 4, "y", &y)}};
  });
  const auto got = download<float>(memory, y, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto row = x.begin() + static_cast<std::ptrdiff_t>(i / 1024 * 1024);
    ASSERT_FLOAT_EQ(got[i], x[i] / std::accumulate(row, row + 1024, 0.0f)) << i;
  }
  EXPECT_EQ(c.cluster_barriers, 24u);
  EXPECT_EQ(c.remote_shared_requests, 12u * 8 * 3) << "each warp reads three other blocks";
}

TEST_P(CudaProgram90, AClusterWithoutItsLastBarrierIsFound) {
  const ptx::Module module = compile("clusters", GetParam(), "-DFORGET_LAST_SYNC");
  const auto finding = [&](const std::string& kernel, Launch launch) {
    launch.kernel = kernel;
    Options options;
    options.sanitize = {.race = true};
    const LaunchResult r = run(module, launch, memory, device(target), options);
    return r.findings.empty() ? Finding{} : r.findings[0];
  };
  std::vector<int> x(4096);
  const Finding histogram =
      finding("cluster_histogram",
              Launch{.kernel = "",
                     .grid = {4, 1, 1},
                     .block = {128, 1, 1},
                     .cluster = Dim3{4, 1, 1},
                     .dynamic_shared_bytes = 384,
                     .arguments = {give(x, "x"), give(x, "bins"), Argument::i32(4096), Argument::i32(96)}});
  EXPECT_TRUE(histogram.kind == FindingKind::kSharedRace || histogram.kind == FindingKind::kBlockLifetime)
      << histogram.message;
  EXPECT_NE(histogram.cuda_location.find("clusters.cu:"), std::string::npos) << histogram.cuda_location;
  const Finding rows = finding(
      "cluster_normalise",
      Launch{.kernel = "",
             .grid = {4, 1, 1},
             .block = {256, 1, 1},
             .arguments = {give(std::vector<float>(1024, 1.0f), "x"), give(std::vector<float>(1024), "y")}});
  EXPECT_EQ(rows.kind, FindingKind::kBlockLifetime) << rows.message;
}

TEST_P(CudaProgram90, BulkCopiesOfTheLibraryMoveTiles) {
  const ptx::Module module = compile("bulk_copies");
  constexpr int kTile = 1024;
  const std::vector<int> x = scrambled(8 * kTile, 1 << 20);
  DeviceAddress y = 0;
  const Counters c = run_clean(module, "add_one", [&] {
    return Launch{.kernel = "",
                  .grid = {8, 1, 1},
                  .block = {256, 1, 1},
                  .arguments = {give(x, "x"), room(x.size() * 4, "y", &y)}};
  });
  const auto got = download<int>(memory, y, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], x[i] + 1) << i;
  EXPECT_EQ(c.bulk_copies, 16u);
  EXPECT_EQ(c.bulk_sectors, 16u * kTile * 4 / 32);
  EXPECT_EQ(c.gld_transactions, 8u * kTile * 4 / 32);
}

TEST_P(CudaProgram90, ARingOfTilesOfTheLibraryAddsThemUp) {
  const ptx::Module module = compile("bulk_copies");
  constexpr int kTile = 1024, kTiles = 7, kBlocks = 3;
  const std::vector<int> x = scrambled(kBlocks * kTiles * kTile, 1000);
  DeviceAddress y = 0;
  const Counters c = run_clean(module, "sum_tiles", [&] {
    return Launch{.kernel = "",
                  .grid = {kBlocks, 1, 1},
                  .block = {160, 1, 1},
                  .arguments = {give(x, "x"), room(kBlocks * kTile * 4, "y", &y), Argument::i32(kTiles)}};
  });
  const auto got = download<int>(memory, y, kBlocks * kTile);
  for (int b = 0; b < kBlocks; ++b)
    for (int i = 0; i < kTile; ++i) {
      int sum = 0;
      for (int t = 0; t < kTiles; ++t) sum += x[static_cast<std::size_t>((b * kTiles + t) * kTile + i)];
      ASSERT_EQ(got[static_cast<std::size_t>(b * kTile + i)], sum);
    }
  EXPECT_EQ(c.bulk_copies, static_cast<std::uint64_t>(kBlocks * kTiles));
}

TEST_P(CudaProgram90, BarriersOfTheLibraryTakeTurns) {
  const ptx::Module module = compile("bulk_copies");
  std::vector<int> x(200);
  std::iota(x.begin(), x.end(), 0);
  DeviceAddress in_place = 0;
  run_clean(module, "rotate", [&] {
    return Launch{.kernel = "",
                  .grid = {1, 1, 1},
                  .block = {200, 1, 1},
                  .dynamic_shared_bytes = 800,
                  .arguments = {give(x, "x", &in_place), Argument::i32(5)}};
  });
  const auto got = download<int>(memory, in_place, x.size());
  for (int i = 0; i < 200; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], (i + 5) % 200);
}

TEST_P(CudaProgram90, WhatBulkCopiesWantIsFoundWhereItIsForgotten) {
  const auto finding = [&](const std::string& forgotten, Launch launch) {
    const ptx::Module module = compile("bulk_copies", GetParam(), forgotten);
    Options options;
    options.sanitize = {.race = true};
    const LaunchResult r = run(module, launch, memory, device(target), options);
    return r.findings.empty() ? Finding{} : r.findings[0];
  };
  const std::vector<int> x(8192);
  DeviceAddress y = 0;
  const Finding fence = finding("-DFORGET_FENCE", Launch{.kernel = "add_one",
                                                         .grid = {8, 1, 1},
                                                         .block = {256, 1, 1},
                                                         .arguments = {give(x, "x"), room(32768, "y", &y)}});
  EXPECT_NE(fence.message.find("with no fence.proxy.async in between"), std::string::npos) << fence.message;
  const Finding readers = finding(
      "-DFORGET_READERS", Launch{.kernel = "sum_tiles",
                                 .grid = {1, 1, 1},
                                 .block = {160, 1, 1},
                                 .arguments = {give(x, "x"), room(32768, "y", &y), Argument::i32(7)}});
  EXPECT_EQ(readers.kind, FindingKind::kSharedRace) << readers.message;
}

INSTANTIATE_TEST_SUITE_P(Compilers, CudaProgram90, ::testing::Values(Compiler::kNvcc90, Compiler::kNvcc120),
                         [](const auto& tested) {
                           return tested.param == Compiler::kNvcc90 ? "NvccSm90" : "NvccSm120";
                         });

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
