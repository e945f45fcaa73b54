// Thread block clusters: what blocks of one find out about it, do with each other's shared memory, and do
// wrong.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "simulator/isa/isa.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace TEST_FILE {

/// A kernel k(in, out) of sm_90: %d1 holds in, %d2 out, %r1 tid, %r2 the number of the thread in the launch
/// (grids and blocks are of one dimension where it matters), %d3 where its result goes, %r3 the rank of its
/// block, %r4 the number of blocks of its cluster, %r5 4 * tid.
std::string kernel(const std::string& body, const std::string& directives = "") {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 "
         "out)\n" +
         directives +
         "\n{\n.reg .pred %p<8>;\n.reg .b32 %r<40>;\n.reg .f32 %f<8>;\n.reg .b64 %d<32>;\n"
         ".shared .align 16 .b8 pad[64];\n.shared .align 16 .b8 mine[1024];\n"
         "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r10, %ctaid.x;\n"
         "mov.u32 %r11, %ntid.x; mad.lo.u32 %r2, %r10, %r11, %r1; mul.wide.u32 %d3, %r2, 4; add.u64 %d3, "
         "%d2, "
         "%d3;\nmov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank; shl.b32 %r5, %r1, 2;\n" +
         body + "\nret;\n}\n";
}

struct Launched {
  Dim3 grid{4, 1, 1}, block{64, 1, 1};
  std::optional<Dim3> cluster = Dim3{4, 1, 1};
  bool non_portable = false;
  std::string device = "h100";
  Sanitizers sanitize{};
  int host_threads = 0;
};

Outcome run_kernel(const std::string& text, const Launched& setup) {
  const ptx::Module module = ptx::parse(text, "cluster.ptx");
  Launch launch{.kernel = "k", .grid = setup.grid, .block = setup.block};
  launch.cluster = setup.cluster;
  launch.non_portable_cluster = setup.non_portable;
  Options options;
  options.sanitize = setup.sanitize;
  options.host_threads = setup.host_threads;
  const std::size_t threads = setup.grid.count() * setup.block.count();
  return run_on_numbers(module, launch, options, setup.device, threads, threads);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no " + from);
  return text.replace(at, from.size(), to);
}

constexpr Sanitizers kBoth{.race = true, .init = true};

/// Every thread leaves its number in its block and takes that of its like in the next block of the cluster.
const std::string kExchange = R"(
mov.u32 %r6, mine;
add.u32 %r6, %r6, %r5;
st.shared.u32 [%r6], %r2;
barrier.cluster.arrive;
barrier.cluster.wait;
add.u32 %r7, %r3, 1;
rem.u32 %r7, %r7, %r4;
mapa.shared::cluster.u32 %r8, %r6, %r7;
ld.shared::cluster.u32 %r9, [%r8];
barrier.cluster.arrive;
barrier.cluster.wait;
st.global.u32 [%d3], %r9;)";

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

// ---- every form

/// Body that leaves a number at [%d3] by one form, and the number that thread `t` of block rank `rank` has to
/// leave.
struct Reference {
  std::string body;
  std::function<std::uint32_t(std::uint32_t rank, std::uint32_t t)> expected;
};

/// By form; the barrier forms exchange through shared memory, those of addresses give what they say.
std::map<std::string, Reference> references() {
  std::map<std::string, Reference> all;
  const auto next = [](std::uint32_t rank, std::uint32_t t) { return (rank + 1) % 4 * 64 + t; };
  for (const char* arrive : {"", ".release"})
    for (const char* aligned : {"", ".aligned"}) {
      all[fmt::format("barrier.cluster.arrive{}{}", arrive, aligned)] = {
          replaced(kExchange, "arrive;", fmt::format("arrive{}{};", arrive, aligned)), next};
      const std::string wait = *arrive ? ".acquire" : "";
      all[fmt::format("barrier.cluster.wait{}{}", wait, aligned)] = {
          replaced(kExchange, "wait;", fmt::format("wait{}{};", wait, aligned)), next};
      // The fence before it releases in its place.
      std::string relaxed = kExchange;
      relaxed = relaxed.insert(relaxed.rfind("barrier.cluster.arrive;"), "fence.acq_rel.cluster;\n");
      relaxed = relaxed.replace(relaxed.rfind("arrive;"), 7, fmt::format("arrive.relaxed{};", aligned));
      all[fmt::format("barrier.cluster.arrive.relaxed{}", aligned)] = {relaxed, next};
    }
  all["mapa.shared::cluster.u32"] = {kExchange, next};
  all["mapa.u32"] = {replaced(kExchange, "mapa.shared::cluster", "mapa"), next};
  const std::string wide = replaced(replaced(kExchange, "mapa.shared::cluster.u32 %r8, %r6, %r7",
                                             "cvt.u64.u32 %d6, %r6; mapa.shared::cluster.u64 %d8, %d6, %r7"),
                                    "[%r8]", "[%d8]");
  all["mapa.shared::cluster.u64"] = {wide, next};
  const std::string generic = replaced(
      replaced(wide, "mapa.shared::cluster", "cvta.shared.u64 %d6, %d6; mapa"), "ld.shared::cluster", "ld");
  all["mapa.u64"] = {generic, next};
  const auto other = [](std::uint32_t rank, std::uint32_t) { return (rank + 1) % 4; };
  const auto rank_instead = [](const std::string& text, const std::string& load, const std::string& by) {
    return replaced(text, load, by);
  };
  const std::string ld = "ld.shared::cluster.u32 %r9, [%r8]", ld_wide = "ld.shared::cluster.u32 %r9, [%d8]";
  all["getctarank.shared::cluster.u32"] = {
      rank_instead(kExchange, ld, "getctarank.shared::cluster.u32 %r9, %r8"), other};
  all["getctarank.u32"] = {rank_instead(kExchange, ld, "getctarank.u32 %r9, %r8"), other};
  all["getctarank.shared::cluster.u64"] = {
      rank_instead(wide, ld_wide, "getctarank.shared::cluster.u64 %r9, %d8"), other};
  all["getctarank.u64"] = {rank_instead(generic, "ld.u32 %r9, [%d8]", "getctarank.u64 %r9, %d8"), other};
  return all;
}

TEST(Conformance, EveryFormOfClustersGivesWhatItsReferenceDoes) {
  const auto known = references();
  int forms = 0;
  for (const std::string& form : ptx::supported_instructions()) {
    if (!form.starts_with("barrier.cluster") && !form.starts_with("mapa") && !form.starts_with("getctarank"))
      continue;
    const auto reference = known.find(form);
    ASSERT_NE(reference, known.end()) << form << " has no reference";
    ++forms;
    for (const Sanitizers& what : {Sanitizers{}, kBoth}) {
      const Outcome r = run_kernel(kernel(reference->second.body), {.sanitize = what});
      ASSERT_EQ(r.text(), "") << form;
      for (std::uint32_t t = 0; t < 256; ++t)
        ASSERT_EQ(r.out[t], reference->second.expected(t / 64, t % 64)) << form << ", thread " << t;
    }
  }
  EXPECT_EQ(forms, static_cast<int>(known.size()));
}

/// Loads and stores of every width and count of elements: bytes written to the next block are what it reads
/// back.
TEST(Conformance, LoadsAndStoresOfOtherBlocksMoveEveryWidth) {
  for (const bool generic : {false, true})
    for (const auto& [type, reg, bytes] :
         {std::tuple{"u8", "%r", 1}, {"u16", "%r", 2}, {"u32", "%r", 4}, {"u64", "%d", 8}})
      for (const char* count : {"", ".v2", ".v4"}) {
        const int n = *count == 0 ? 1 : count[2] - '0';
        if (bytes * n > 16) continue;
        SCOPED_TRACE(fmt::format("{}{} {}", type, count, generic));
        const auto list = [&](int first) {
          std::string text;
          for (int k = 0; k < n; ++k) text += fmt::format("{}{}{}", k ? ", " : "", reg, first + k);
          return n == 1 ? text : "{" + text + "}";
        };
        std::string body =
            "mov.u32 %r6, mine; shl.b32 %r7, %r1, 4; add.u32 %r6, %r6, %r7;\n"
            "add.u32 %r8, %r3, 1; rem.u32 %r8, %r8, %r4; mapa.shared::cluster.u32 %r9, %r6, %r8;\n"
            "barrier.cluster.arrive; barrier.cluster.wait;\n";
        for (int k = 0; k < n; ++k)
          body += bytes == 8 ? fmt::format("mul.wide.u32 %d{}, %r2, {};\n", 20 + k, 0x1234567 + k)
                             : fmt::format("mad.lo.u32 %r{}, %r2, {}, {};\n", 20 + k, 7 + k, k);
        const std::string address = generic ? "[%d9]" : "[%r9]", space = generic ? "" : ".shared::cluster";
        if (generic) body += "cvt.u64.u32 %d9, %r9; cvta.shared::cluster.u64 %d9, %d9;\n";
        body += fmt::format("st{}{}.{} {}, {};\n", space, count, type, address, list(20));
        body += "barrier.cluster.arrive; barrier.cluster.wait;\n";
        body += fmt::format("ld.shared{}.{} {}, [%r6];\n", count, type, list(30 - (bytes == 8 ? 6 : 0)));
        body += fmt::format("ld{}{}.{} {}, {};\n", space, count, type, list(bytes == 8 ? 28 : 34), address);
        body += "mov.u32 %r17, 0; mov.u32 %r18, 0;\n";
        for (int k = 0; k < n; ++k) {
          if (bytes == 8)
            body += fmt::format("cvt.u32.u64 %r15, %d{}; cvt.u32.u64 %r16, %d{};\n", 24 + k, 28 + k);
          else
            body += fmt::format("mov.u32 %r15, %r{}; mov.u32 %r16, %r{};\n", 30 + k, 34 + k);
          body += "mad.lo.u32 %r17, %r17, 31, %r15; mad.lo.u32 %r18, %r18, 31, %r16;\n";
        }
        body +=
            "barrier.cluster.arrive; barrier.cluster.wait; shl.b32 %r17, %r17, 16; and.b32 %r18, %r18, "
            "65535;\n"
            "or.b32 %r17, %r17, %r18; st.global.u32 [%d3], %r17;";
        const auto hash = [&](std::uint32_t thread) {
          std::uint32_t h = 0;
          for (int k = 0; k < n; ++k) {
            const auto u = static_cast<std::uint32_t>(k);
            std::uint32_t v = bytes == 8 ? thread * (0x1234567u + u) : thread * (7 + u) + u;
            if (bytes < 4) v &= (1u << 8 * bytes) - 1;
            h = h * 31 + v;
          }
          return h;
        };
        const Outcome r = run_kernel(kernel(body), {.sanitize = kBoth});
        ASSERT_EQ(r.text(), "");
        for (std::uint32_t t = 0; t < 256; ++t) {
          const std::uint32_t writer =
              (t / 64 + 3) % 4 * 64 + t % 64;  // who wrote to this block; this one reads its own
          ASSERT_EQ(r.out[t], hash(writer) << 16 | (hash(t) & 65535)) << t;
        }
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

// ---- findings

TEST(Cluster, FindingsOfWrongAddresses) {
  EXPECT_EQ(run_kernel(kernel(replaced(kExchange, "[%r8]", "[%r8+1024]")), {}).text(),
            "out-of-bounds: reads 4 bytes at shared memory offset 1088, past the 1088 bytes this block has");
  EXPECT_EQ(run_kernel(kernel(replaced(kExchange, "rem.u32 %r7, %r7, %r4;", "")), {}).text(),
            "out-of-bounds: reads 4 bytes of shared memory of block rank 4, of a cluster of 4");
  EXPECT_EQ(
      run_kernel(kernel(replaced(kExchange, "ld.shared::cluster.u32", "ld.shared.u32")), {}).text(),
      "out-of-bounds: reads 4 bytes of shared memory of block rank 0 where only that of the block itself may "
      "be (.shared::cta)");
  EXPECT_EQ(run_kernel(kernel(replaced(kExchange, "[%r8]", "[%r8+2]")), {}).text().substr(0, 10),
            "misaligned");
  EXPECT_EQ(run_kernel(kernel("mapa.u64 %d8, %d1, 0; ld.u32 %r9, [%d8];"), {}).text(),
            "out-of-bounds: takes an address that is not in shared memory");
}

/// Each way to wait that never ends, or is used wrongly.
TEST(Cluster, FindingsOfBarriers) {
  const auto text = [](const std::string& body) { return run_kernel(kernel(body), {}).text(); };
  const std::string arrive = "barrier.cluster.arrive;\n", wait = "barrier.cluster.wait;\n";
  // In block 2 the first warp waits for the second at a block barrier, and that for it at the cluster's.
  EXPECT_EQ(
      text("setp.eq.u32 %p1, %r3, 2;\nsetp.lt.u32 %p2, %r1, 32;\nand.pred %p1, %p1, %p2;\n@%p1 bra other;\n" +
           arrive + wait + "bar.sync 0;\nret;\nother:\nbar.sync 0;\n" + arrive + wait),
      "barrier-mismatch: the cluster barrier wants the 256 running threads of the cluster; 224 have arrived "
      "and the other 32 wait elsewhere");
  EXPECT_EQ(text("setp.eq.u32 %p1, %r3, 2;\n@%p1 bra over;\n" + arrive + wait + "over:\n"), "")
      << "who has ended need not come";
  EXPECT_EQ(text(wait), "barrier-mismatch: waits at the cluster barrier without having arrived at it");
  EXPECT_EQ(text(arrive + arrive + wait),
            "barrier-mismatch: arrives at the cluster barrier again without having waited for it");
  EXPECT_EQ(text("setp.lt.u32 %p1, %r1, 40;\n@%p1 bra over;\n" + arrive + wait + "over:\n").substr(0, 17),
            "divergent-barrier");
  EXPECT_EQ(text("setp.lt.u32 %p1, %r1, 40;\n@%p1 barrier.cluster.arrive.aligned;\n" + wait).substr(0, 17),
            "divergent-barrier");
  EXPECT_EQ(
      text("setp.lt.u32 %p1, %r1, 40;\n@%p1 barrier.cluster.arrive;\n@!%p1 barrier.cluster.arrive;\n" + wait),
      "")
      << "threads arrive for themselves";
}

TEST(Cluster, ReadingABlockThatHasEndedIsFoundWithoutSanitizers) {
  // Blocks end after the exchange is written but before all have read.
  const std::string early = kExchange.substr(0, kExchange.rfind("barrier.cluster.arrive"));
  EXPECT_EQ(run_kernel(kernel(early + "st.global.u32 [%d3], %r9;"), {}).text(),
            "block-lifetime: reads 4 bytes of shared memory of block rank 3 of the cluster, which has ended");
}

/// What only the order of accesses tells: the same program is found whatever the turns of the blocks.
TEST(Cluster, RaceSanitizerKnowsWhatBarriersOrder) {
  const auto text = [](const std::string& body) {
    return run_kernel(kernel(body), {.sanitize = {.race = true}}).text();
  };
  EXPECT_EQ(text(kExchange), "");
  const std::string first = "barrier.cluster.arrive;\nbarrier.cluster.wait;\nadd";
  // Relaxed arrival releases nothing.
  EXPECT_EQ(text(replaced(kExchange, first, "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\nadd"))
                .substr(0, 14),
            "block-lifetime");
  EXPECT_EQ(text("barrier.cluster.arrive; barrier.cluster.wait;\n" +
                 replaced(kExchange, first, "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\nadd"))
                .substr(0, 11),
            "shared-race");
  // Without the first barrier the other block may not even have begun.
  EXPECT_EQ(text(replaced(kExchange, first, "add")),
            "block-lifetime: reads 4 bytes of shared memory of block rank 1, which may not have started: no "
            "cluster "
            "barrier came before");
  // One-sided: rank 0 reads all others, which do not wait for that.
  const std::string gather = R"(
mov.u32 %r6, mine; add.u32 %r6, %r6, %r5; st.shared.u32 [%r6], %r2;
barrier.cluster.arrive; barrier.cluster.wait;
setp.ne.u32 %p1, %r3, 0;
@%p1 bra over;
mapa.shared::cluster.u32 %r8, %r6, 3;
ld.shared::cluster.u32 %r9, [%r8];
st.global.u32 [%d3], %r9;
over:)";
  EXPECT_EQ(text(gather),
            "block-lifetime: reads 4 bytes of shared memory of block rank 3 of the cluster, which has ended");
  // Where the reader comes first by the turns that blocks take, the others end without waiting all the same.
  EXPECT_EQ(text(replaced(replaced(gather, "%p1, %r3, 0", "%p1, %r3, 3"), "%r6, 3;", "%r6, 0;")),
            "block-lifetime: reads 4 bytes of shared memory of block rank 0, which ends without waiting for "
            "that: no cluster barrier came in between");
  EXPECT_EQ(text(gather + "\nbarrier.cluster.arrive; barrier.cluster.wait;"), "");
  EXPECT_EQ(text(gather + "\nbarrier.cluster.arrive.relaxed; barrier.cluster.wait;").substr(0, 14),
            "block-lifetime");
  // Writing what the neighbour has yet to read.
  EXPECT_EQ(text(replaced(kExchange, "ld.shared::cluster.u32 %r9, [%r8];",
                          "ld.shared::cluster.u32 %r9, [%r8]; st.shared.u32 [%r6], %r1;"))
                .substr(0, 11),
            "shared-race");
}

TEST(Cluster, AFlagInTheOtherBlockOrdersToo) {
  // Rank 1 writes data to rank 0 and then sets its flag; rank 0 waits for the flag, reads, and answers; rank
  // 1 waits.
  const std::string body = R"(
mov.u32 %r6, mine; mov.u32 %r20, 0; mov.u32 %r21, 1;
setp.ne.u32 %p1, %r1, 0;
@!%p1 st.shared.u32 [%r6], %r20;
barrier.cluster.arrive; barrier.cluster.wait;
@%p1 bra over;
setp.eq.u32 %p2, %r3, 0;
@%p2 bra reader;
mapa.shared::cluster.u32 %r8, %r6, 0;
mov.u32 %r22, 77;
st.shared::cluster.u32 [%r8+4], %r22;
st.release.cluster.shared::cluster.u32 [%r8], %r21;
wait1:
ld.acquire.cluster.shared.u32 %r9, [%r6];
setp.eq.u32 %p3, %r9, 0;
@%p3 bra wait1;
bra over;
reader:
wait0:
ld.acquire.cluster.shared.u32 %r9, [%r6];
setp.eq.u32 %p3, %r9, 0;
@%p3 bra wait0;
ld.shared.u32 %r10, [%r6+4];
st.global.u32 [%d3], %r10;
mapa.shared::cluster.u32 %r8, %r6, 1;
st.release.cluster.shared::cluster.u32 [%r8], %r21;
over:)";
  const Launched setup{.grid = {2, 1, 1}, .cluster = Dim3{2, 1, 1}, .sanitize = kBoth};
  const Outcome r = run_kernel(kernel(body), setup);
  EXPECT_EQ(r.text(), "");
  EXPECT_EQ(r.out[0], 77u);
  EXPECT_EQ(run_kernel(kernel(replaced(body, "st.release.cluster", "st.relaxed.cluster")), setup)
                .text()
                .substr(0, 11),
            "shared-race");
}

TEST(Cluster, InitSanitizerLooksIntoOtherBlocks) {
  EXPECT_EQ(
      run_kernel(kernel(replaced(kExchange, "[%r8]", "[%r8+512]")), {.sanitize = {.init = true}}).text(),
      "uninitialised-read: reads 4 bytes at shared memory offset 576 of block rank 0, of which byte 0 was "
      "never written");
}

}  // namespace TEST_FILE
}  // namespace stitchwork::sim
