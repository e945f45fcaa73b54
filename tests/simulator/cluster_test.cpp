// Thread block clusters: what blocks of one find out about it, and do with each other's shared memory.
#include <numeric>

#include "core/base/error.h"
#include "tests/simulator/clusters.h"

namespace stitchwork::sim {
namespace TEST_FILE {

using namespace clusters;

TEST(Cluster, BlocksReadEachOthersSharedMemory) {
  for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
    const Outcome r = run_kernel(kernel(kExchange), {.grid = {8, 1, 1}, .sanitize = what});
    ASSERT_EQ(r.text(), "");
    for (std::uint32_t t = 0; t < 8 * 64; ++t) {
      const std::uint32_t block = t / 64, next = block / 4 * 4 + (block + 1) % 4;
      ASSERT_EQ(r.out[t], next * 64 + t % 64);
    }
    EXPECT_EQ(r.result.counters.cluster_barriers, 16u) << "two of each block";
    EXPECT_EQ(r.result.counters.remote_shared_requests, 16u) << "one of each warp";
    EXPECT_EQ(r.result.counters.remote_shared_sectors, 64u);
    EXPECT_EQ(r.result.counters.shared_load_requests, 0u);
    EXPECT_EQ(r.result.counters.shared_store_requests, 16u);
  }
}

TEST(Cluster, CountersAndTimeAreTheSameWhateverTheHostThreads) {
  const Launched setup{.grid = {2048, 1, 1}, .host_threads = 1};
  const Outcome one = run_kernel(kernel(kExchange), setup);
  for (const int threads : {2, 3, 5}) {
    Launched several = setup;
    several.host_threads = threads;
    const Outcome r = run_kernel(kernel(kExchange), several);
    EXPECT_EQ(r.out, one.out);
    EXPECT_EQ(counter_list(r.result.counters), counter_list(one.result.counters));
    EXPECT_EQ(r.result.time_us, one.result.time_us);
  }
}

/// Where each special register of a cluster of 2x3x1 blocks in a grid of 4x6x2 says a block is.
TEST(Cluster, SpecialRegistersSayWhereABlockIs) {
  const char* const names[] = {
      "%clusterid.x",      "%clusterid.y",      "%clusterid.z",     "%nclusterid.x",    "%nclusterid.y",
      "%nclusterid.z",     "%cluster_ctaid.x",  "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_nctaid.x",
      "%cluster_nctaid.y", "%cluster_nctaid.z", "%cluster_ctarank", "%cluster_nctarank"};
  std::string body =
      "mov.u32 %r10, %ctaid.y; mov.u32 %r11, %ctaid.z; mov.u32 %r12, %ctaid.x; mad.lo.u32 %r10, %r11, 6, "
      "%r10; mad.lo.u32 %r10, %r10, 4, %r12; mul.wide.u32 %d3, %r10, 64; add.u64 %d3, %d2, %d3;\n";
  int k = 0;
  for (const char* name : names)
    body += fmt::format("mov.u32 %r13, {}; st.global.u32 [%d3+{}], %r13;\n", name, 4 * k++);
  body += "mov.pred %p1, %is_explicit_cluster; selp.u32 %r13, 1, 0, %p1; st.global.u32 [%d3+56], %r13;";
  const auto where = [&](std::optional<Dim3> cluster) {
    return run_kernel(kernel(body), {.grid = {4, 6, 2}, .block = {16, 1, 1}, .cluster = cluster});
  };
  const Outcome r = where(Dim3{2, 3, 1});
  ASSERT_EQ(r.text(), "");
  for (std::uint32_t z = 0; z < 2; ++z)
    for (std::uint32_t y = 0; y < 6; ++y)
      for (std::uint32_t x = 0; x < 4; ++x) {
        const std::uint32_t* got = &r.out[16 * (x + 4 * (y + 6 * z))];
        const std::vector<std::uint32_t> expected = {
            x / 2, y / 3, z, 2, 2, 2, x % 2, y % 3, 0, 2, 3, 1, x % 2 + 2 * (y % 3), 6, 1};
        EXPECT_EQ(std::vector<std::uint32_t>(got, got + 15), expected) << x << ' ' << y << ' ' << z;
      }
  const Outcome none = where(std::nullopt);  // every block is a cluster of its own
  const std::uint32_t* got = &none.out[16 * (3 + 4 * (5 + 6 * 1))];
  EXPECT_EQ(std::vector<std::uint32_t>(got, got + 15),
            (std::vector<std::uint32_t>{3, 5, 1, 4, 6, 2, 0, 0, 0, 1, 1, 1, 0, 1, 0}));
}

/// As nvcc compiled it (tests/simulator/cuda/clusters.cu), where there is no nvcc.
TEST(Cluster, ACompiledKernelNormalisesRowsOfFourBlocks) {
  const ptx::Module module = fixture("clusters.ptx");
  DeviceMemory memory;
  std::vector<float> x(2048);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(1 + i % 5);
  const DeviceAddress y = memory.allocate(8192, "y");
  Launch launch{.kernel = "cluster_normalise", .grid = {8, 1, 1}, .block = {256, 1, 1}};
  launch.arguments = {Argument::pointer(upload(memory, x, "x")), Argument::pointer(y)};
  const LaunchResult r = run(module, launch, memory, device("h100"), {});
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  EXPECT_EQ(r.cluster.x, 4u);
  const auto got = download<float>(memory, y, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto row = x.begin() + static_cast<std::ptrdiff_t>(i / 1024 * 1024);
    ASSERT_FLOAT_EQ(got[i], x[i] / std::accumulate(row, row + 1024, 0.0f)) << i;
  }
}

/// All threads of the cluster count in the first block, by each way there is.
TEST(Cluster, AtomicsReachOtherBlocks) {
  const std::string body = R"(
mov.u32 %r6, mine; mov.u32 %r9, 0;
setp.ne.u32 %p1, %r1, 0;
@!%p1 st.shared.u32 [%r6], %r9;
barrier.cluster.arrive; barrier.cluster.wait;
mapa.shared::cluster.u32 %r8, %r6, 0;
cvt.u64.u32 %d6, %r8; cvta.shared::cluster.u64 %d6, %d6;
COUNT
barrier.cluster.arrive; barrier.cluster.wait;
ld.shared::cluster.u32 %r9, [%r8];
barrier.cluster.arrive; barrier.cluster.wait;
st.global.u32 [%d3], %r9;)";
  for (const char* count :
       {"atom.shared::cluster.add.u32 %r12, [%r8], 3;", "red.shared::cluster.add.u32 [%r8], 3;",
        "atom.add.u32 %r12, [%d6], 3;", "red.add.u32 [%d6], 3;",
        "atom.relaxed.cluster.shared::cluster.add.u32 %r12, [%r8], 3;",
        "red.release.cluster.shared::cluster.add.u32 [%r8], 3;",
        "atom.acq_rel.cluster.add.u32 %r12, [%d6], 3;"}) {
    for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
      const Outcome r = run_kernel(kernel(replaced(body, "COUNT", count)), {.sanitize = what});
      ASSERT_EQ(r.text(), "") << count;
      EXPECT_EQ(r.out, std::vector<std::uint32_t>(256, 3 * 256)) << count;
      EXPECT_EQ(r.result.counters.atomics, 256u);
      EXPECT_EQ(r.result.counters.remote_shared_requests, 6u + 6u)
          << "of three blocks the atomics and the loads";
    }
  }
}

TEST(Cluster, AnAddressMeansTheSameInAllBlocks) {
  // Each block tells the next where its memory is; that reads there.
  const std::string body =
      replaced(kExchange, "mapa.shared::cluster.u32 %r8, %r6, %r7;\nld.shared::cluster.u32 %r9, [%r8];",
               "mov.u32 %r20, mine; mapa.shared::cluster.u32 %r21, %r20, %r7;\n"
               "st.shared::cluster.u32 [%r21+512], %r6;\n"
               "barrier.cluster.arrive; barrier.cluster.wait;\n"
               "ld.shared.u32 %r22, [mine+512]; ld.shared::cluster.u32 %r9, [%r22];");
  // All threads of a block store; the last one's address stays.
  const Outcome r = run_kernel(kernel(body), {});
  ASSERT_EQ(r.text(), "");
  for (std::uint32_t t = 0; t < 256; ++t) EXPECT_EQ(r.out[t], (t / 64 + 3) % 4 * 64 + 63);
}

// ---- launches

std::string refusal(const std::string& text, const Launched& setup) {
  try {
    run_kernel(text, setup);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(Cluster, WrongLaunchesAreRefused) {
  const std::string text = kernel(kExchange);
  EXPECT_EQ(refusal(text, {.device = "a100"}),
            "kernel 'k' uses thread block clusters, which a100-sxm-80 (sm_80) does not have");
  EXPECT_EQ(refusal(text, {.grid = {6, 1, 1}}),
            "kernel 'k' is given a grid of 6,1,1 blocks, which is no multiple of its clusters of 4,1,1");
  EXPECT_EQ(refusal(text, {.grid = {4, 2, 1}, .cluster = Dim3{2, 2, 2}}),
            "kernel 'k' is given a grid of 4,2,1 blocks, which is no multiple of its clusters of 2,2,2");
  EXPECT_EQ(refusal(text, {.grid = {16, 1, 1}, .cluster = Dim3{16, 1, 1}}),
            "kernel 'k' is given clusters of 16 blocks, and more than 8 are not portable");
  EXPECT_EQ(refusal(text, {.grid = {16, 1, 1}, .cluster = Dim3{16, 1, 1}, .non_portable = true}), "");
  EXPECT_EQ(refusal(text, {.grid = {32, 1, 1}, .cluster = Dim3{32, 1, 1}, .non_portable = true}),
            "kernel 'k' is given clusters of 32 blocks; h100-sxm has 16 at most");
  EXPECT_EQ(refusal(kernel(kExchange, ".explicitcluster"), {.cluster = {}}),
            "kernel 'k' has to be launched with a cluster size (.explicitcluster)");
  EXPECT_EQ(refusal(kernel(kExchange, ".explicitcluster\n.reqnctapercluster 2"), {}),
            "kernel 'k' runs in clusters of 2,1,1 blocks (.reqnctapercluster), not of 4,1,1");
  EXPECT_EQ(refusal(kernel(kExchange, ".explicitcluster\n.reqnctapercluster 2, 1, 1"), {.cluster = {}}), "");
  EXPECT_EQ(refusal(kernel(kExchange, ".maxclusterrank 2"), {}),
            "kernel 'k' allows 2 blocks a cluster (.maxclusterrank), 4 given");
}

TEST(Cluster, OccupancyIsOfClustersThatFitTheGpcs) {
  // 132 SMs in eight GPCs: six of 16 and two of 18. One block an SM: 32 clusters of four, not 33.
  const std::string text = kernel("");
  const auto share = [&](std::uint32_t grid, std::uint32_t cluster) {
    return run_kernel(text, {.grid = {grid, 1, 1},
                             .block = {1024, 1, 1},
                             .cluster = Dim3{cluster, 1, 1},
                             .non_portable = true})
        .result.resident_share;
  };
  // Two blocks of 1024 threads an SM.
  EXPECT_DOUBLE_EQ(share(128, 4), 128.0 / 264);
  EXPECT_DOUBLE_EQ(share(128, 8), 128.0 / (8 * (6 * 4 + 2 * 4)));
  EXPECT_DOUBLE_EQ(share(128, 16), 128.0 / (16 * (6 * 2 + 2 * 2)));
}

TEST(Cluster, ResidencyOfADeadlockIsOfWholeClusters) {
  // Every block waits for all of the grid.
  const std::string text = kernel(R"(
atom.global.add.u32 %r12, [%d1], 1;
again:
ld.volatile.global.u32 %r13, [%d1];
setp.lt.u32 %p1, %r13, 1000000;
@%p1 bra again;)");
  const Outcome r = run_kernel(text, {.grid = {264, 1, 1}, .block = {1024, 1, 1}, .cluster = Dim3{8, 1, 1}});
  EXPECT_EQ(
      r.text(),
      "grid-deadlock: all 256 resident blocks wait for the others: the grid has 264 blocks, 256 (2 an SM on "
      "132 SMs) are resident at once, in clusters of 8 within a GPC, so the 8 not yet started never arrive");
}

TEST(Cluster, BlocksThatWaitForTheGridRunInClustersToo) {
  // A grid barrier between two exchanges.
  const std::string barrier = R"(
bar.sync 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra waited;
membar.gl;
atom.global.add.u32 %r12, [%d1], 1;
again:
ld.volatile.global.u32 %r13, [%d1];
setp.lt.u32 %p2, %r13, 17;
@%p2 bra again;
membar.gl;
waited:
bar.sync 0;
)";
  const Outcome r = run_kernel(kernel(barrier + kExchange), {.grid = {16, 1, 1}});
  ASSERT_EQ(r.text(), "");
  EXPECT_EQ(r.result.counters.grid_barriers, 1u);
  EXPECT_EQ(r.result.counters.cluster_barriers, 32u);
  for (std::uint32_t t = 0; t < 16 * 64; ++t)
    ASSERT_EQ(r.out[t], (t / 256 * 4 + (t / 64 + 1) % 4) * 64 + t % 64);
}

TEST(Cluster, TimeGrowsWithBarriersAndRemoteAccesses) {
  const auto time = [](const std::string& body) {
    const Outcome r = run_kernel(kernel(body), {.grid = {128, 1, 1}});
    EXPECT_EQ(r.text(), "");
    return r.result.time_us;
  };
  const std::string one = "barrier.cluster.arrive; barrier.cluster.wait;\n";
  std::string ten;
  for (int k = 0; k < 10; ++k) ten += one;
  // 180 clocks of 1.98 GHz each.
  EXPECT_NEAR(time(ten + kExchange) - time(kExchange), 10 * 180 / 1980.0, 0.05);
  const std::string load = "ld.shared::cluster.u32 %r9, [%r8];\n";
  std::string loads;  // each needs the one before
  for (int k = 0; k < 10; ++k) loads += load + "and.b32 %r9, %r9, 0; add.u32 %r8, %r8, %r9;\n";
  EXPECT_NEAR(time(replaced(kExchange, load, loads + load)) - time(kExchange), 10 * 180 / 1980.0, 0.1);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
