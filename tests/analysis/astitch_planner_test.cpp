#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/planners/planner.h"
#include "analysis/stitching/options.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "tests/support/astitch_passes.h"
#include "tests/support/fuzz.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

using ::testing::ElementsAre;

const Device& v100() { return device("v100"); }

/// Through make_plan, which throws for what verify refuses: a knob has its default unless it is set.
FusionPlan planned(const Graph& graph, std::map<std::string, std::string> knobs = {}) {
  return make_plan(graph, v100(), "astitch", {.knobs = std::move(knobs), .record_decisions = true});
}

// Through make_plan, which checks what it made with verify: with the default mapping.
TEST(AstitchPlanner, RandomGraphsPlanValidlyUnderEveryKnob) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const std::string text = stitchwork::testing::random_hlo(seed, {.ops = 10 + static_cast<int>(seed)});
    SCOPED_TRACE(text);
    const Graph graph = canonicalize(parse_hlo(text, "random.hlo"));
    const Device& target = device(stitchwork::testing::kFuzzDevices[seed % 5]);
    const auto& names = planner("astitch").knobs;
    EXPECT_NO_THROW(make_plan(graph, target, "astitch"));
    for (const Knob& knob : knobs())
      for (const std::string_view value : knob.values)
        if (knob.name == names[seed % names.size()] && value != knob.default_value) {
          EXPECT_NO_THROW(
              make_plan(graph, target, "astitch", {.knobs = {{std::string(knob.name), std::string(value)}}}));
        }
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(AstitchPlanner, Fig7LaunchesAsThePaperSays) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan = planned(graph, {{"mapping", "paper"}});
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].launch.grid, 147);
  EXPECT_EQ(plan.kernels[0].launch.block, 1024);
  EXPECT_EQ(plan.kernels[0].launch.grid_barriers, 2);
  EXPECT_EQ(plan.kernels[0].launch.register_bound, 32);
}

TEST(AstitchPlanner, StitchesAllThatLiesBetweenTheLibraryCallsOfBertBase) {
  const Graph graph = dataset("bert_base");
  const FusionPlan plan = planned(graph);
  EXPECT_LE(plan.counts.memory_kernels, plan.counts.library_calls + 1);
  // Only the last kernel has a grid barrier: its second result is one row of the first.
  int barriers = 0;
  for (const KernelPlan& kernel : plan.kernels) barriers += kernel.launch.grid_barriers;
  EXPECT_EQ(barriers, 1);
}

TEST(AstitchPlanner, EveryKnobGivesValidPlans) {
  for (const char* name : {"fig7", "softmax", "layer_norm", "bert_layer", "row_64x30000", "column_sum"}) {
    const Graph graph = dataset(name);
    for (const std::string_view knob : planner("astitch").knobs) {
      SCOPED_TRACE(fmt::format("{} {}=off", name, knob));
      const std::string value = knob == "mapping" ? "paper" : "off";
      EXPECT_NO_THROW(make_plan(graph, v100(), "astitch", {.knobs = {{std::string(knob), value}}}));
    }
  }
}

TEST(AstitchPlanner, WithoutRegisterRelaxationTheAssumedBoundStays) {
  const Graph graph = dataset("row_750000x32");
  const Device& t4 = device("t4");
  const auto bound = [&](const char* relaxation) {
    const FusionPlan plan = make_plan(graph, t4, "astitch",
                                      {.knobs = {{"mapping", "paper"}, {"register_relaxation", relaxation}}});
    return plan.kernels.at(0).launch.register_bound;
  };
  EXPECT_EQ(bound("on"), 64);
  EXPECT_EQ(bound("off"), 32);
}

TEST(AstitchPlanner, UnknownKnobsAndValuesNameTheKnownOnes) {
  const Graph graph = dataset("fig7");
  try {
    planned(graph, {{"colour", "red"}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("dominant_merging"));
  }
  EXPECT_THROW(planned(graph, {{"mapping", "fastest"}}), Error);
  EXPECT_THROW(planned(graph, {{"dominant_merging", "maybe"}}), Error);
}

TEST(AstitchPlanner, AKernelOverTheSharedMemoryLimitDemotesValues) {
  const Graph graph = parse(R"(ENTRY e {
    x = f32[512,16384] parameter(0)
    y = f32[512,16384,2] parameter(1)
    zero = f32[] constant(0)
    r = f32[512] reduce(x, zero), dimensions={1}, to_apply=sum
    wr = f32[512,16384] broadcast(r), dimensions={0}
    d = f32[512,16384] subtract(x, wr)
    e = f32[512,16384] exponential(d)
    we = f32[512,16384,2] broadcast(e), dimensions={0,1}
    ROOT out = f32[512,16384,2] add(we, y)
  })");
  const FusionPlan plan = planned(graph);
  ASSERT_EQ(plan.kernels.size(), 1u);
  const KernelPlan& kernel = plan.kernels[0];
  EXPECT_EQ(kernel.schemes.at(graph.entry_computation().find("e")), Scheme::kGlobal);
  EXPECT_EQ(kernel.schemes.at(graph.entry_computation().find("r")), Scheme::kRegional);
  EXPECT_EQ(kernel.launch.grid_barriers, 1);
  EXPECT_LE(kernel.launch.shared_bytes, v100().shared_bytes_per_block_default);
}

/// `n` reductions over alternating dimensions, each reading the one before: a phase each.
std::string zigzag(int n) {
  std::string entry = "ENTRY e {\n x = f32[256,256] parameter(0)\n zero = f32[] constant(0)\n";
  std::string last = "x";
  for (int i = 0; i < n; ++i) {
    entry +=
        fmt::format(" r{0} = f32[256] reduce({1}, zero), dimensions={{{2}}}, to_apply=sum\n", i, last, i % 2);
    entry += fmt::format(" w{0} = f32[256,256] broadcast(r{0}), dimensions={{{1}}}\n", i, 1 - i % 2);
    entry += fmt::format(" {2}a{0} = f32[256,256] add(x, w{0})\n", i, 0, i + 1 == n ? "ROOT " : "");
    last = fmt::format("a{}", i);
  }
  return entry + "}";
}

TEST(AstitchPlanner, TooManyPhasesCutTheKernel) {
  const Graph graph = parse(zigzag(30));
  const FusionPlan plan = planned(graph);
  EXPECT_GT(plan.kernels.size(), 1u);
  for (const KernelPlan& kernel : plan.kernels) EXPECT_LE(kernel.launch.grid_barriers + 1, 8);
  EXPECT_TRUE(std::any_of(plan.decisions.begin(), plan.decisions.end(),
                          [](const Decision& d) { return d.verdict.rule == "astitch.kernel-limits"; }));
}

TEST(AstitchPlanner, TooManyGroupsCutTheKernel) {
  std::string entry = "ENTRY e {\n x = f32[64] parameter(0)\n", shapes, results;
  for (int i = 0; i < 60; ++i) {
    entry += fmt::format(
        " s{0} = f32[{1}] slice(x), slice={{[0:{1}]}}\n b{0} = f32[{1},{2}] broadcast(s{0}), "
        "dimensions={{0}}\n n{0} = f32[{1},{2}] negate(b{0})\n",
        i, 1 + i, 2);
    shapes += fmt::format("{}f32[{},2]", i ? ", " : "", 1 + i);
    results += fmt::format("{}n{}", i ? ", " : "", i);
  }
  // One root reads all of them, so that they form one cluster.
  std::string sum = "n0s";
  entry += " zero = f32[] constant(0)\n n0s = f32[] reduce(n0, zero), dimensions={0,1}, to_apply=sum\n";
  for (int i = 1; i < 60; ++i) {
    entry += fmt::format(
        " n{0}s = f32[] reduce(n{0}, zero), dimensions={{0,1}}, to_apply=sum\n t{0} = f32[] "
        "add({1}, n{0}s)\n",
        i, sum);
    sum = fmt::format("t{}", i);
  }
  entry += fmt::format(" ROOT t = (f32[], {}) tuple({}, {})\n}}", shapes, sum, results);
  const Graph graph = parse(entry);
  const FusionPlan plan = planned(graph);
  EXPECT_GT(plan.kernels.size(), 1u);
  for (const KernelPlan& kernel : plan.kernels) EXPECT_LE(kernel.groups.size(), 48u);
}

TEST(AstitchPlanner, AStencilAppliedOftenDoesNotGrowItsExpressionsWithoutBound) {
  std::string entry = "ENTRY e {\n v0 = f32[4096] parameter(0)\n";
  for (int i = 0; i < 12; ++i) {
    const int n = 4096 - 2 * i;
    entry += fmt::format(" l{0} = f32[{1}] slice(v{0}), slice={{[0:{1}]}}\n", i, n - 2);
    entry += fmt::format(" m{0} = f32[{1}] slice(v{0}), slice={{[1:{2}]}}\n", i, n - 2, n - 1);
    entry += fmt::format(" r{0} = f32[{1}] slice(v{0}), slice={{[2:{2}]}}\n", i, n - 2, n);
    entry += fmt::format(" s{0} = f32[{1}] add(l{0}, m{0})\n", i, n - 2);
    entry +=
        fmt::format(" {3}v{2} = f32[{1}] multiply(s{0}, r{0})\n", i, n - 2, i + 1, i == 11 ? "ROOT " : "");
  }
  const Graph graph = parse(entry + "}");
  planned(graph);
}

TEST(AstitchPlanner, IsDeterministic) {
  const Graph graph = dataset("bert_layer");
  EXPECT_EQ(to_text(graph, planned(graph)), to_text(graph, planned(graph)));
}

TEST(AstitchPlanner, RecordsDecisionsOfEveryPassWhenAsked) {
  const Graph graph = dataset("fig7");
  EXPECT_TRUE(make_plan(graph, v100(), "astitch").decisions.empty());
  const FusionPlan plan = planned(graph);
  std::set<std::string> steps;
  for (const Decision& decision : plan.decisions) steps.insert(decision.step);
  EXPECT_THAT(steps, ::testing::IsSupersetOf({"scope", "dominants", "merging", "locality", "launch"}));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
