#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planners/planner.h"
#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/rules.h"
#include "tests/support/graphs.h"
#include "tests/support/mapping_fields.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using ::testing::ElementsAre;
using testing::graph_of;
using testing::op;
using testing::outputs;

FusionPlan plan(const Graph& graph) {
  return make_plan(graph, device("v100"), "xla", {.record_decisions = true});
}

/// The rules that refused `subject` into `object`.
std::vector<std::string> refusals(const FusionPlan& plan, const std::string& subject,
                                  const std::string& object) {
  std::vector<std::string> rules;
  for (const Decision& d : plan.decisions)
    if (!d.verdict.ok && d.subject == subject && (object.empty() || d.object == object))
      rules.push_back(d.verdict.rule);
  return rules;
}

TEST(Xla, Fig7TakesFourKernels) {
  const Graph graph = dataset("fig7");
  const FusionPlan p = plan(graph);
  EXPECT_THAT(outputs(graph, p), ElementsAre("reduce.1", "power.1", "reduce.2", "multiply.1"));
  EXPECT_THAT(refusals(p, "power.1", "broadcast.2"), ElementsAre("xla.expensive-and-reused"));  // pattern 2
  EXPECT_THAT(refusals(p, "reduce.1", "power.1"),
              ::testing::Contains("xla.reduce-is-never-a-producer"));  // pattern 1
}

TEST(Xla, RowReductionsGetABlockARow) {
  const auto mapping = [](const char* model) { return plan(dataset(model)).kernels.at(0); };
  const KernelPlan narrow = mapping("row_750000x32");
  EXPECT_EQ(narrow.launch.grid, 750000);
  EXPECT_EQ(narrow.launch.block, 32);
  const KernelPlan wide = mapping("row_64x30000");
  EXPECT_EQ(wide.launch.grid, 64);
  EXPECT_EQ(wide.launch.block, 1024);
}

TEST(Xla, ColumnSumsAddTilesAtomicallyAfterAMemset) {
  const Graph graph = graph_of(
      "p = f32[1000,64] parameter(0)\n z = f32[] constant(0)\n"
      "ROOT r = f32[64] reduce(p, z), dimensions={0}, to_apply=sum");
  const FusionPlan p = plan(graph);
  const testing::MappingFields m = p.kernels.at(0).groups.at(0);
  EXPECT_EQ(m.kind, testing::MappingKind::kColumn);
  EXPECT_EQ(m.split, 8);  // ceil(1000 / 128)
  EXPECT_EQ(m.combine, testing::Combine::kAtomic);
  EXPECT_EQ(p.counts.memsets, 1);
  EXPECT_EQ(p.steps.at(0).kind, StepKind::kMemset);
}

TEST(Xla, ColumnMaximaAreNotSplit) {
  const Graph graph = graph_of(
      "p = f32[1000,64] parameter(0)\n z = f32[] constant(-inf)\n"
      "ROOT r = f32[64] reduce(p, z), dimensions={0}, to_apply=max");
  const FusionPlan p = plan(graph);
  EXPECT_EQ(segments(p.kernels.at(0).groups.at(0).mapping), 1);
  EXPECT_EQ(p.counts.memsets, 0);
}

TEST(Xla, ShortReductionsAreInlinedIntoTheirUsers) {
  const Graph graph = graph_of(
      "p = f32[4096,8] parameter(0)\n z = f32[] constant(0)\n"
      "r = f32[4096] reduce(p, z), dimensions={1}, to_apply=sum\n ROOT n = f32[4096] negate(r)");
  EXPECT_THAT(outputs(graph, plan(graph)), ElementsAre("n"));
}

TEST(Xla, AReductionInsideALoopIsNotPutIntoAnother) {
  const Graph graph = graph_of(
      "p = f32[4096,8,4] parameter(0)\n z = f32[] constant(0)\n"
      "a = f32[4096,8] reduce(p, z), dimensions={2}, to_apply=sum\n"
      "ROOT b = f32[4096] reduce(a, z), dimensions={1}, to_apply=sum");
  const FusionPlan p = plan(graph);
  EXPECT_THAT(outputs(graph, p), ElementsAre("a", "b"));
  EXPECT_THAT(refusals(p, "a", "b"), ::testing::Contains("xla.nested-loops"));
}

TEST(Xla, CheapOpsAreDuplicatedAndExpensiveOnesAreNot) {
  const std::string rest =
      "a = f32[64,64] negate(x)\n b = f32[64,64] transpose(x), dimensions={1,0}\n"
      "d = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT r = f32[64,64] "
      "negate(d)";
  const Graph cheap = graph_of("p = f32[64,64] parameter(0)\n x = f32[64,64] abs(p)\n" + rest);
  EXPECT_THAT(outputs(cheap, plan(cheap)), ::testing::Not(::testing::Contains("x")));
  const Graph expensive = graph_of("p = f32[64,64] parameter(0)\n x = f32[64,64] tanh(p)\n" + rest);
  EXPECT_THAT(refusals(plan(expensive), "x", "a"), ::testing::Contains("xla.expensive-to-duplicate"));
}

TEST(Xla, AProducerThatReadsMoreThanItWritesIsNotCopiedIfItMustRemain) {
  // x reads two arrays and writes one; the dot keeps it alive whatever else happens.
  const Graph graph = graph_of(
      "p = f32[64,64] parameter(0)\n q = f32[64,64] parameter(1)\n x = f32[64,64] add(p, q)\n"
      "n = f32[64,64] negate(x)\n"
      "d = f32[64,64] dot(x, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT r = f32[64,64] "
      "abs(d)");
  EXPECT_THAT(refusals(plan(graph), "x", "n"), ::testing::Contains("xla.globally-unfusible"));
}

TEST(Xla, AReductionKeepsItsProducerAsASecondResult) {
  const Graph graph = dataset("softmax");
  EXPECT_THAT(outputs(graph, plan(graph)), ElementsAre("reduce.10", "exponential.17+reduce.22", "divide.27"));
}

TEST(Xla, SiblingReductionsOfOneInputJoin) {
  const Graph graph = graph_of(
      "p = f32[512,256] parameter(0)\n z = f32[] constant(0)\n s = f32[512,256] multiply(p, p)\n"
      "a = f32[512] reduce(p, z), dimensions={1}, to_apply=sum\n"
      "b = f32[512] reduce(s, z), dimensions={1}, to_apply=sum\n ROOT t = (f32[512], f32[512]) tuple(a, b)");
  const FusionPlan p = plan(graph);
  EXPECT_THAT(outputs(graph, p), ElementsAre("a+b"));
  EXPECT_EQ(p.kernels.at(0).groups.at(0).sub_dominants.size(), 1u);
}

TEST(Xla, SiblingsThatDependOnEachOtherStayApart) {
  const Graph graph = graph_of(
      "p = f32[512,256] parameter(0)\n z = f32[] constant(0)\n"
      "a = f32[512] reduce(p, z), dimensions={1}, to_apply=sum\n"
      "w = f32[512,256] broadcast(a), dimensions={0}\n d = f32[512,256] subtract(p, w)\n"
      "b = f32[512] reduce(d, z), dimensions={1}, to_apply=sum\n ROOT t = (f32[512], f32[512]) tuple(a, b)");
  EXPECT_THAT(outputs(graph, plan(graph)), ElementsAre("a", "b"));
}

TEST(Xla, AReshapeOfAParameterMakesNoKernel) {
  const Graph graph = graph_of(
      "p = f32[64,64] parameter(0)\n q = f32[4096] reshape(p)\n r = f32[64,64] reshape(q)\n"
      "ROOT d = f32[64,64] dot(r, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  EXPECT_TRUE(plan(graph).kernels.empty());
}

TEST(Xla, KernelsWithTooManyParametersAreRefused) {
  std::string body = "x0 = f32[1024] parameter(0)\n";
  for (int i = 1; i < 100; ++i) {
    body += fmt::format("p{} = f32[1024] parameter({})\n", i, i);
    body += fmt::format("{}x{} = f32[1024] add(x{}, p{})\n", i == 99 ? "ROOT " : "", i, i - 1, i);
  }
  const Graph graph = graph_of(body);
  const FusionPlan p = plan(graph);
  EXPECT_EQ(p.kernels.size(), 2u);
  EXPECT_TRUE(std::any_of(p.decisions.begin(), p.decisions.end(),
                          [](const Decision& d) { return d.verdict.rule == "xla.too-many-parameters"; }));
}

/// Sums of neighbours, level over level: each reads the one below at two indices, as associative scans do.
std::string neighbours(int levels) {
  std::string text = "HloModule m\nENTRY main {\n  v0 = f32[4096] parameter(0)\n";
  for (int k = 0; k < levels; ++k) {
    const int n = 4096 - k - 1;
    text += fmt::format(
        "  a{0} = f32[{1}] slice(v{0}), slice={{[0:{1}]}}\n  b{0} = f32[{1}] slice(v{0}), slice={{[1:{2}]}}\n"
        "  {3}v{4} = f32[{1}] add(a{0}, b{0})\n",
        k, n, n + 1, k + 1 == levels ? "ROOT " : "", k + 1);
  }
  return text + "}\n";
}

TEST(Xla, CodeThatWouldBeEmittedTooOftenIsNotMerged) {
  const Graph few = graph_of(neighbours(3)), many = graph_of(neighbours(12));
  EXPECT_EQ(plan(few).kernels.size(), 1u);
  const FusionPlan p = plan(many);
  // Four levels at most in one kernel: a fifth would be needed at 32 indices.
  EXPECT_GE(p.kernels.size(), 3u);
  std::vector<std::string> rules;
  for (const Decision& d : p.decisions)
    if (!d.verdict.ok && d.step == "fusion-merger") rules.push_back(d.verdict.rule);
  EXPECT_THAT(rules, ::testing::Contains("xla.emitted-too-often"));
}

TEST(Xla, JoinedRootsFitTheDomainTheirKernelHas) {
  // Seen from the reverse the other op lies in its domain; the kernel has the domain of the first root.
  const Graph graph = graph_of(
      "p = f32[300] parameter(0)\n q = f32[0,5,300] parameter(1)\n"
      "b = f32[0,5,300] broadcast(p), dimensions={2}\n a = f32[0,5,300] add(q, b)\n"
      "o = f32[] constant(1)\n m = f32[300] reduce(b, o), dimensions={0,1}, to_apply=max\n"
      "r = f32[0,5,300] reverse(a), dimensions={}\n c = pred[300] compare(m, p), direction=GT\n"
      "ROOT t = (f32[0,5,300], f32[0,5,300], pred[300]) tuple(a, r, c)");
  EXPECT_NO_THROW(plan(graph));
}

TEST(XlaRules, TiledReductionsFollowContiguity) {
  const auto tile = [](const std::string& from, const std::string& to, const std::string& dims) {
    const Graph graph =
        graph_of("p = f32[" + from + "] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[" + to +
                 "] reduce(p, z), dimensions={" + dims + "}, to_apply=sum");
    const Computation& c = graph.entry_computation();
    const auto t = xla::tiled_reduction(c, c.node(c.find("r")));
    return t ? fmt::format("{} {} {} {}", t->row ? "row" : "column", t->depth, t->height, t->width)
             : std::string("no");
  };
  EXPECT_EQ(tile("8,64", "8", "1"), "row 1 8 64");
  EXPECT_EQ(tile("64,8", "8", "0"), "column 1 64 8");
  EXPECT_EQ(tile("4,64,8", "4,8", "1"), "column 4 64 8");
  EXPECT_EQ(tile("4,8,64", "8", "0,2"), "row 4 8 64");
  EXPECT_EQ(tile("7,9", "", "0,1"), "row 1 1 63");
  EXPECT_EQ(tile("4,33,5,33", "4,5", "1,3"), "no");  // neither kept nor reduced dims are contiguous
  EXPECT_EQ(tile("64,31", "64", "1"), "no");         // shorter than a warp
}

TEST(Xla, BlocksOfSixteenElementsAThreadAddUpAScalar) {
  const auto launch = [](const char* planner, const char* extents, const char* reducer) {
    const Graph graph = graph_of(
        std::string("p = f32[") + extents + "] parameter(0)\n z = f32[] constant(0)\n e = f32[" + extents +
        "] negate(p)\n ROOT r = f32[] reduce(e, z), dimensions={0,1}, to_apply=" + reducer);
    const FusionPlan plan = make_plan(graph, device("v100"), planner);
    const KernelLaunch& of = plan.kernels.at(0).launch;
    return fmt::format("{} x {}, {} memsets", of.grid, of.block, plan.counts.memsets);
  };
  for (const char* planner : {"xla", "xla-today"}) {
    EXPECT_EQ(launch(planner, "4096,768", "sum"), "192 x 1024, 1 memsets");
    EXPECT_EQ(launch(planner, "300,1001", "sum"), "19 x 1024, 1 memsets");  // the last has fewer elements
    EXPECT_EQ(launch(planner, "128,128", "sum"), "1 x 1024, 0 memsets");
    EXPECT_EQ(launch(planner, "30,30", "sum"), "1 x 64, 0 memsets");
    EXPECT_EQ(launch(planner, "4096,768", "max"), "1 x 1024, 0 memsets");  // there is no such atomic
  }
}

TEST(XlaRules, ExpensiveDiffersFromHeavy) {
  const Graph graph = graph_of(
      "p = f32[8] parameter(0)\n i = s32[8] parameter(1)\n c = s32[] constant(3)\n k = s32[8] broadcast(c), "
      "dimensions={}\n"
      "a = f32[8] divide(p, p)\n b = f32[8] rsqrt(a)\n e = f32[8] sqrt(b)\n s = f32[8] sine(e)\n"
      "d = s32[8] divide(i, k)\n f = s32[8] divide(d, i)\n ROOT t = (f32[8], s32[8]) tuple(s, f)");
  const Computation& c = graph.entry_computation();
  const auto expensive = [&](const char* name) { return xla::is_expensive(c, c.node(c.find(name))); };
  EXPECT_FALSE(expensive("a"));
  EXPECT_FALSE(expensive("b"));
  EXPECT_TRUE(expensive("e"));
  EXPECT_FALSE(expensive("s"));
  EXPECT_FALSE(expensive("d"));
  EXPECT_TRUE(expensive("f"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
