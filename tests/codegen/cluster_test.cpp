// Rows that the blocks of a thread block cluster share: right, clean under the sanitizers, in one phase.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "codegen/compile/ptx_target.h"
#include "codegen/compile/ptxas.h"
#include "core/base/error.h"
#include "tests/codegen/planned.h"
#include "tests/codegen/workloads.h"
#include "tests/support/clustered.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;
using testing::is_clustered;
using testing::share_rows;

const Device& hopper() { return device("h200"); }

Graph workload(const char* name, std::int64_t rows, std::int64_t cols, const char* dtype = "f32") {
  return graph_of(testing::workload(name).hlo({rows, cols, dtype}));
}

FusionPlan planned(const Graph& graph, const Device& target = hopper(), const char* clusters = "on") {
  PlanOptions options;
  options.knobs = {{"clusters", clusters}, {"tiles", clusters}};
  return make_plan(graph, target, "astitch", options);
}

void expect_right(const Graph& graph, const FusionPlan& plan, const std::string& compiler = "",
                  const Device& target = hopper()) {
  testing::run_sanitized(graph, target, plan, compiler);
}

/// What is planned without clusters, shared by clusters of any size, several rows to each.
void expect_right_in_clusters(const Graph& graph, int cluster, std::int64_t clusters,
                              const std::string& compiler = "") {
  PlanOptions whole_rows;
  whole_rows.knobs = {{"clusters", "off"}, {"adaptive_mapping", "off"}};
  for (FusionPlan plan : {planned(graph, testing::few_sms("h200", 2), "off"),
                          make_plan(graph, hopper(), "astitch", whole_rows)}) {
    plan.device = hopper().id;
    if (plan.kernels.size() != 1 || !share_rows(graph, hopper(), plan, 0, cluster, clusters)) continue;
    expect_right(graph, plan, compiler);
    return;
  }
  ADD_FAILURE() << "no plan whose rows clusters could share";
}

TEST(ClusterRows, ArePlannedInOnePhaseWithoutScratch) {
  for (const auto& [name, rows, cols] :
       {std::tuple{"softmax", 64, 30000}, {"layer_norm", 64, 30000}, {"softmax", 512, 50257}}) {
    SCOPED_TRACE(fmt::format("{} {}x{}", name, rows, cols));
    const Graph graph = workload(name, rows, cols);
    const FusionPlan plan = planned(graph);
    ASSERT_EQ(plan.kernels.size(), 1u);
    const KernelLaunch& launch = plan.kernels[0].launch;
    EXPECT_GT(launch.cluster, 1);
    EXPECT_EQ(launch.grid % launch.cluster, 0);
    EXPECT_EQ(launch.grid_barriers, 0);
    EXPECT_EQ(launch.scratch_bytes, 0);
  }
}

TEST(ClusterRows, AreRightAsPlanned) {
  SKIP_WITHOUT_COMPILER();
  Device few = testing::few_sms("h200", 8);
  few.gpcs = 1;
  int clustered = 0;  // of 90: some are split over more blocks than a cluster has, or 16-bit and peeled
  for (const char* dtype : {"f32", "bf16", "f16"})
    for (const auto& [rows, cols] : {std::pair{1, 100003}, std::pair{3, 30001}, std::pair{33, 50257}})
      for (const char* name : {"softmax", "cross_entropy", "layer_norm", "rms_norm", "residual_norm"}) {
        SCOPED_TRACE(fmt::format("{} {}x{} {}", name, rows, cols, dtype));
        const Graph graph = workload(name, rows, cols, dtype);
        for (const Device& target : {hopper(), few}) {
          const FusionPlan plan = planned(graph, target);
          clustered += is_clustered(plan) ? 1 : 0;
          expect_right(graph, plan, "", target);
        }
      }
  EXPECT_GE(clustered, 36);
}

TEST(ClusterRows, AreRightWhateverTheirLengthAndType) {
  SKIP_WITHOUT_COMPILER();
  for (const char* dtype : {"f32", "bf16", "f16"})
    for (const auto& [rows, cols] :
         {std::pair{1, 100003}, std::pair{3, 30001}, std::pair{3, 30000}, std::pair{3, 50257}})
      for (const char* name : {"softmax", "cross_entropy", "layer_norm", "rms_norm", "residual_norm"}) {
        if (rows == 1 && name != std::string("softmax")) continue;  // scalars have groups of their own
        SCOPED_TRACE(fmt::format("{} {}x{} {}", name, rows, cols, dtype));
        expect_right_in_clusters(workload(name, rows, cols, dtype), 8, 2);
      }
}

TEST(ClusterRows, AreRightInClustersOfAnySizeAndWithSeveralRowsToEach) {
  SKIP_WITHOUT_COMPILER();
  for (const std::string& compiler : testing::installed_compilers())
    for (const int cluster : {2, 4, 8})
      for (const char* name : {"softmax", "rms_norm", "cross_entropy", "residual_norm"}) {
        SCOPED_TRACE(fmt::format("{} in clusters of {}, {}", name, cluster, compiler));
        expect_right_in_clusters(workload(name, 11, 12289), cluster, 3, compiler);
      }
}

/// Rows with fewer elements than the cluster has threads: some blocks have none.
TEST(ClusterRows, MayBeShorterThanTheirBlocks) {
  SKIP_WITHOUT_COMPILER();
  for (const std::int64_t cols : {300, 1025, 2049}) {
    SCOPED_TRACE(cols);
    expect_right_in_clusters(workload("softmax", 5, cols), 8, 2);
  }
}

/// One value a row that other rows' threads do not make: stored once, by one block.
TEST(ClusterRows, StoreValuesOfTheRowOnce) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = graph_of(R"(
  x = f32[6,9000] parameter(0)
  y = f32[6] parameter(1)
  zero = f32[] constant(0)
  s = f32[6] reduce(x, zero), dimensions={1}, to_apply=sum
  t = f32[6] exponential(y)
  u = f32[6] multiply(s, t)
  b = f32[6,9000] broadcast(u), dimensions={0}
  z = f32[6,9000] add(x, b)
  ROOT r = (f32[6], f32[6], f32[6,9000]) tuple(s, u, z)
)");
  expect_right_in_clusters(graph, 4, 4);
}

/// Of integers, bytes, doubles: what goes from block to block has their size.
TEST(ClusterRows, ReduceEveryType) {
  SKIP_WITHOUT_COMPILER();
  const std::string compiler = testing::installed_compilers().front();
  for (const auto& [type, zero] : {std::pair{"f64", "0"}, {"s32", "0"}, {"s64", "0"}, {"u8", "0"}}) {
    SCOPED_TRACE(type);
    const Graph graph = graph_of(fmt::format(R"(HloModule m
sum {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT s = {0}[] add(a, b) }}
ENTRY main {{
  x = {0}[6,9000] parameter(0)
  zero = {0}[] constant({1})
  s = {0}[6] reduce(x, zero), dimensions={{1}}, to_apply=sum
  b = {0}[6,9000] broadcast(s), dimensions={{0}}
  ROOT z = {0}[6,9000] subtract(x, b)
}}
)",
                                             type, zero));
    expect_right_in_clusters(graph, 4, 4, compiler);
  }
  expect_right_in_clusters(graph_of(R"(HloModule m
any { a = pred[] parameter(0)  b = pred[] parameter(1)  ROOT s = pred[] or(a, b) }
ENTRY main {
  x = pred[6,9000] parameter(0)
  zero = pred[] constant(false)
  s = pred[6] reduce(x, zero), dimensions={1}, to_apply=any
  b = pred[6,9000] broadcast(s), dimensions={0}
  ROOT z = pred[6,9000] and(x, b)
}
)"),
                           4, 4, compiler);
}

/// Two rows' worth of groups in a kernel, and an element-wise one on blocks of its own.
TEST(ClusterRows, ShareAKernelWithOtherLoops) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = graph_of(R"(
  x = f32[5,30000] parameter(0)
  y = f32[5,30000] parameter(1)
  v = f32[1000] parameter(2)
  zero = f32[] constant(0)
  p = f32[5] reduce(x, zero), dimensions={1}, to_apply=sum
  pb = f32[5,30000] broadcast(p), dimensions={0}
  q = f32[5,30000] multiply(x, pb)
  s = f32[5] reduce(y, zero), dimensions={1}, to_apply=sum
  sb = f32[5,30000] broadcast(s), dimensions={0}
  t = f32[5,30000] multiply(y, sb)
  w = f32[1000] exponential(v)
  ROOT r = (f32[5,30000], f32[5,30000], f32[1000]) tuple(q, t, w)
)");
  expect_right(graph, planned(graph));
  expect_right_in_clusters(graph, 2, 2);
}

/// A kernel that sums its rows' columns in the pass over the rows.
FusionPlan across_rows(const Graph& graph) {
  for (const int sms : {1, 2, 4}) {
    FusionPlan plan = planned(graph, testing::few_sms("h200", sms), "off");
    plan.device = hopper().id;
    const auto crosses = [](const Group& group) { return !group.across.empty(); };
    if (plan.kernels.size() == 1 &&
        std::any_of(plan.kernels[0].groups.begin(), plan.kernels[0].groups.end(), crosses))
      return plan;
  }
  ADD_FAILURE() << "no plan with sums across the rows";
  return {};
}

/// Sums of columns beside those of rows, by one cluster that has all rows, by several, by one a row.
TEST(ClusterRows, LeaveTheirPartsOfSumsAcrossThem) {
  SKIP_WITHOUT_COMPILER();
  const std::string compiler = testing::installed_compilers().front();
  for (const char* dtype : {"f32", "bf16"})
    for (const char* name : {"layer_norm_grad", "rms_norm_grad"})
      for (const auto& [rows, cols] : {std::pair{64, 1500}, {64, 3001}, {24, 8192}})
        for (const auto& [cluster, clusters] : {std::pair{2, 1}, {4, 7}, {2, rows}, {8, 3}}) {
          SCOPED_TRACE(
              fmt::format("{} {}x{} {}: {} clusters of {}", name, rows, cols, dtype, clusters, cluster));
          const Graph graph = workload(name, rows, cols, dtype);
          FusionPlan plan = across_rows(graph);
          ASSERT_TRUE(share_rows(graph, hopper(), plan, 0, cluster, clusters)) << to_text(graph, plan);
          EXPECT_GT(plan.kernels[0].launch.grid_barriers, 0);
          EXPECT_THAT(to_text(graph, plan),
                      ::testing::HasSubstr(fmt::format("across the rows, {} partials", clusters)));
          expect_right(graph, plan, compiler);
        }
}

/// Whole, their accumulators are more than a block has registers for.
TEST(ClusterRows, ArePlannedWithSumsAcrossThemInOnePass) {
  const Graph graph = workload("layer_norm_grad", 512, 50257);
  const FusionPlan plan = planned(graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  const KernelLaunch& launch = plan.kernels[0].launch;
  EXPECT_GT(launch.cluster, 1);
  EXPECT_EQ(launch.grid_barriers, 1);
  EXPECT_LE(launch.grid, resident_blocks(hopper(), launch.blocks_per_sm, launch.cluster));
  EXPECT_THAT(to_text(graph, plan), ::testing::HasSubstr(fmt::format("across the rows, {} partials",
                                                                     launch.grid / launch.cluster)));
  EXPECT_FALSE(is_clustered(planned(graph, hopper(), "off")));
}

TEST(ClusterRows, AreLeftToDevicesThatHaveThemAndToTheKnob) {
  const Graph graph = workload("softmax", 64, 30000);
  EXPECT_TRUE(is_clustered(planned(graph, device("h100"))));
  EXPECT_FALSE(is_clustered(planned(graph, device("v100"))));
  EXPECT_FALSE(is_clustered(planned(graph, device("a100-sxm-80"))));
  EXPECT_FALSE(is_clustered(planned(graph, hopper(), "off")));
  PlanOptions paper;
  paper.knobs["mapping"] = "paper";
  EXPECT_FALSE(is_clustered(make_plan(graph, hopper(), "astitch", paper)));
}

TEST(ClusterRows, ShortRowsKeepToABlock) {
  for (const std::int64_t cols : {32, 1024})
    EXPECT_FALSE(is_clustered(planned(workload("softmax", 16384, cols)))) << cols;
}

TEST(ClusterRows, ComeBackFromJson) {
  const Graph graph = workload("softmax", 64, 30000);
  const FusionPlan plan = planned(graph);
  const std::string json = plan_to_json(graph, plan).dump();
  const FusionPlan read = plan_from_json(graph, json, "plan.json");
  EXPECT_EQ(plan_to_json(graph, read).dump(), json);
  EXPECT_EQ(read.kernels[0].launch.cluster, plan.kernels[0].launch.cluster);
  EXPECT_EQ(read.kernels[0].groups[0].mapping, plan.kernels[0].groups[0].mapping);
}

/// The rule of the first problem after a change to a good plan.
template <typename Change>
std::string refused(const Change& change, const Device& target = hopper()) {
  const Graph graph = workload("softmax", 64, 30000);
  FusionPlan plan = planned(graph);
  EXPECT_TRUE(verify(graph, hopper(), plan).empty());
  change(plan.kernels.at(0));
  plan.device = target.id;
  const std::vector<Verdict> problems = verify(graph, target, plan);
  return problems.empty() ? "" : problems[0].rule;
}

TEST(ClusterRows, VerifyRefusesWhatCannotBeLaunched) {
  EXPECT_EQ(refused([](KernelPlan& k) { k.launch.cluster = 3; }), "verify.cluster");
  EXPECT_EQ(refused([](KernelPlan& k) { k.launch.cluster = 1; }), "verify.cluster");
  EXPECT_EQ(refused([](KernelPlan& k) { k.launch.cluster = 16; }), "verify.cluster");
  EXPECT_EQ(refused([](KernelPlan& k) { k.launch.grid += 1; }), "verify.cluster");
  EXPECT_EQ(
      refused([](KernelPlan& k) { k.groups[0].deal.first_block = 1, k.launch.grid += k.launch.cluster; }),
      "verify.cluster");
  EXPECT_EQ(refused([](KernelPlan& k) { as<mapping::Cluster>(k.groups[0].mapping)->threads /= 2; }),
            "verify.cluster");
  EXPECT_EQ(refused([](KernelPlan& k) { k.groups[0].deal.takers = k.groups[0].deal.tasks + 1; }),
            "verify.mapping.blocks");
  EXPECT_EQ(refused([](KernelPlan&) {}, device("a100-sxm-80")), "verify.cluster");
  Device small = hopper();  // a block fills its one SM
  small.sms = small.gpcs = 1;
  EXPECT_EQ(refused([](KernelPlan& k) { k.launch.register_bound = 65536 / k.launch.block / 8 * 8; }, small),
            "verify.cluster");
  EXPECT_EQ(refused([](KernelPlan& k) {
              for (MemorySlot& slot : k.shared)
                if (slot.op == kNoNode) slot.bytes /= 2;
            }),
            "verify.workspace");
}

/// At a grid barrier, those resident at once wherever the SMs are: with two blocks an SM 29 clusters of 8,
/// not the 32 of GPCs of equal size.
TEST(ClusterRows, VerifyRefusesMoreThanAreSurelyResidentAtAGridBarrier) {
  const Graph graph = workload("layer_norm_grad", 64, 8192);
  FusionPlan plan = across_rows(graph);
  plan.kernels.at(0).launch.block = 512;
  plan.kernels[0].launch.register_bound = 64;
  plan.kernels[0].launch.blocks_per_sm = 2;
  ASSERT_TRUE(share_rows(graph, hopper(), plan, 0, 8, 29)) << to_text(graph, plan);
  plan.kernels[0].launch.grid += 8;
  const std::vector<Verdict> problems = verify(graph, hopper(), plan);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].rule, "verify.residency");
  EXPECT_THAT(problems[0].why, ::testing::HasSubstr("240 blocks wait for each other at grid barriers, but "
                                                    "only 232 are resident"));
}

TEST(ClusterRows, VerifyRefusesPartsOfRowsThatOtherBlocksHave) {
  // Elements in shared memory are those of one block, and reversed they are another's.
  const Graph graph = graph_of(R"(
  x = f32[4,3000] parameter(0)
  zero = f32[] constant(0)
  e = f32[4,3000] exponential(x)
  s = f32[4] reduce(e, zero), dimensions={1}, to_apply=sum
  b = f32[4,3000] broadcast(s), dimensions={0}
  v = f32[4,3000] reverse(e), dimensions={1}
  w = f32[4,3000] add(e, v)
  ROOT z = f32[4,3000] divide(w, b)
)");
  FusionPlan plan = planned(graph, testing::few_sms("h200", 2), "off");
  plan.device = hopper().id;
  ASSERT_TRUE(share_rows(graph, hopper(), plan, 0, 2, 4));
  KernelPlan& kernel = plan.kernels[0];
  const Computation& computation = graph.entry_computation();
  for (const NodeId op : kernel.ops)
    if (computation.node(op).op == Op::kExp) {
      kernel.groups[0].sub_dominants.insert(
          std::lower_bound(kernel.groups[0].sub_dominants.begin(), kernel.groups[0].sub_dominants.end(), op),
          op);
      kernel.schemes[op] = Scheme::kRegional;
      kernel.launch.shared_bytes = round_up(kernel.launch.shared_bytes, std::int64_t{16});
      kernel.shared.push_back({op, kernel.launch.shared_bytes, 3000 * 4});
      kernel.launch.shared_bytes += 3000 * 4;
    }
  const std::vector<Verdict> problems = verify(graph, hopper(), plan);
  ASSERT_FALSE(problems.empty()) << to_text(graph, plan);
  EXPECT_EQ(problems[0].rule, "verify.locality");
}

TEST(ClusterRows, PrintedForReadingAndForEveryCompiler) {
  const Graph graph = workload("softmax", 64, 30000);
  const FusionPlan plan = planned(graph);
  const int cluster = plan.kernels[0].launch.cluster;
  const Schedule kernel = build_schedule(graph, plan.kernels[0]);
  const std::string readable = to_cuda(graph, kernel, false), canonical = to_cuda(graph, kernel, true);
  EXPECT_THAT(readable, ::testing::HasSubstr(fmt::format(", clusters of {} blocks", cluster)));
  for (const std::string& text : {readable, canonical}) {
    EXPECT_THAT(text, ::testing::HasSubstr(fmt::format("void SW_CLUSTER({}) __launch_bounds__", cluster)));
    EXPECT_EQ(cluster_of(text), cluster);
    EXPECT_EQ(cluster_of(cuda_prelude(text)), 1);
    EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("__syncthreads")));
    EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("sw_grid_barrier")));
  }
  EXPECT_THAT(to_text(graph, kernel), ::testing::HasSubstr(fmt::format(" in clusters of {}", cluster)));
}

TEST(ClusterRows, CompileWithoutSpillsByEveryCompiler) {
  if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas is installed";
  const Graph graph = workload("softmax", 64, 30000);
  const FusionPlan plan = planned(graph);
  for (const std::string& compiler : testing::installed_compilers()) {
    CompileOptions options;
    options.compiler = compiler;
    options.cache_dir = "none";
    const Executable executable = compile(graph, hopper(), plan, options);
    const CompiledKernel& kernel = executable.kernels.at(0);
    EXPECT_EQ(least_architecture(kernel.ptx), 90) << compiler;
    ASSERT_TRUE(kernel.spill_bytes.has_value()) << compiler << ": ptxas refuses the PTX";
    EXPECT_EQ(*kernel.spill_bytes, 0) << compiler;
  }
}

TEST(ClusterRows, AreRefusedByACompilerWithoutThem) {
  if (!find_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  const Graph graph = workload("softmax", 64, 30000);
  CompileOptions options;
  options.compiler = "nvrtc";
  try {
    compile(graph, device("a100-sxm-80"), planned(graph), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("which need code for sm_90 or later"));
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("clusters=off"));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
