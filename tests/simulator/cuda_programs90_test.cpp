// CUDA C++ programs for sm_90: clusters, bulk copies and barriers of the library.
#include <numeric>

#include "tests/simulator/cuda_programs.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace cuda_programs;

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

TEST_P(CudaProgram90, TilesGoRoundTheBlocksOfAClusterInBulk) {
  const ptx::Module module = compile("bulk_copies");
  constexpr int kTile = 1024, kBlocks = 8;
  const std::vector<int> x = scrambled(kBlocks * kTile, 1000);
  DeviceAddress y = 0;
  const Counters c = run_clean(module, "ring_sums", [&] {
    return Launch{.kernel = "",
                  .grid = {kBlocks, 1, 1},
                  .block = {256, 1, 1},
                  .arguments = {give(x, "x"), room(x.size() * 4, "y", &y)}};
  });
  const auto got = download<int>(memory, y, x.size());
  for (int b = 0; b < kBlocks; ++b)
    for (int i = 0; i < kTile; ++i) {
      int sum = 0;
      for (int other = b / 4 * 4; other < b / 4 * 4 + 4; ++other)
        sum += x[static_cast<std::size_t>(other * kTile + i)];
      ASSERT_EQ(got[static_cast<std::size_t>(b * kTile + i)], sum) << b << " " << i;
    }
  EXPECT_EQ(c.bulk_copies, kBlocks * 3u);
  EXPECT_EQ(c.remote_shared_requests, kBlocks * 3u);
  EXPECT_EQ(c.remote_shared_sectors, kBlocks * 3u * kTile * 4 / 32);
}

TEST_P(CudaProgram90, TilesThatGoRoundTooSoonAreFound) {
  const auto finding = [&](const char* options) {
    const ptx::Module module = compile("bulk_copies", GetParam(), options);
    memory = DeviceMemory(true);
    const std::vector<int> x(4096);
    const Launch launch{.kernel = "ring_sums",
                        .grid = {4, 1, 1},
                        .block = {256, 1, 1},
                        .arguments = {give(x, "x"), give(x, "y")}};
    Options race;
    race.sanitize = {.race = true};
    const LaunchResult r = run(module, launch, memory, device(target), race);
    return r.findings.empty() ? std::string() : r.findings[0].message;
  };
  EXPECT_NE(finding("-DFORGET_FENCE").find("no fence.proxy.async"), std::string::npos);
  // The next block's tile has not arrived when this one is sent there, or is sent on.
  const std::string turn = finding("-DFORGET_TURN");
  EXPECT_TRUE(turn.starts_with("has a bulk copy")) << turn;
  EXPECT_NE(turn.find("which the bulk copy at PTX line"), std::string::npos) << turn;
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
