// Planner auto: small products in kernels (analysis/planners/auto/products.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/explain.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/once.h"
#include "analysis/planners/auto/products.h"
#include "analysis/planners/planner.h"
#include "tests/support/astra_graphs.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

FusionPlan planned(const Graph& graph, const char* products, const char* on = "a100-sxm-80") {
  return make_plan(graph, device(on), "auto", {.knobs = {{"products", products}}});
}

int products_in_kernels(const Graph& graph, const FusionPlan& plan) {
  int count = 0;
  for (const KernelPlan& kernel : plan.kernels)
    count += static_cast<int>(std::ranges::count_if(
        kernel.ops, [&](NodeId op) { return is_product(graph.entry_computation().node(op)); }));
  return count;
}

/// A product of m x k by k x n between element-wise ops.
Graph between(int m, int k, int n, const char* type = "f32") {
  return testing::graph_of(fmt::format(R"(
    x = {3}[{0},{1}] parameter(0)
    w = {3}[{1},{2}] parameter(1)
    e = {3}[{0},{1}] tanh(x)
    d = {3}[{0},{2}] dot(e, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
    ROOT r = {3}[{0},{2}] tanh(d))",
                                       m, k, n, type));
}

TEST(AutoProducts, SmallOnesAreComputedByTheKernelAroundThem) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    const Graph graph = between(8, 64, 64, type);
    const FusionPlan plan = planned(graph, "on");
    EXPECT_EQ(plan.counts.library_calls, 0) << type;
    EXPECT_EQ(plan.counts.memory_kernels, 1) << type;
    const FusionPlan calls = planned(graph, "off");
    EXPECT_EQ(calls.counts.library_calls, 1) << type;
    EXPECT_LT(plan.predicted_us, calls.predicted_us) << type;
  }
}

TEST(AutoProducts, LargeOnesAreCallsAndTakeNoTimeToTry) {
  const Graph graph = between(512, 512, 512);
  EXPECT_THAT(automatic::small_products(graph, device("a100-sxm-80")), IsEmpty());
  EXPECT_EQ(planned(graph, "on").counts.library_calls, 1);
}

TEST(AutoProducts, EmptyOnesAndThoseDoneOnceAreCalls) {
  EXPECT_THAT(automatic::small_products(between(8, 0, 8), device("v100")), IsEmpty());
  const Graph graph = testing::graph_of(R"(
    x = f32[8,64] parameter(0)
    w = f32[64,64] parameter(1)
    v = f32[64,64] parameter(2)
    wv = f32[64,64] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT d = f32[8,64] dot(x, wv), lhs_contracting_dims={1}, rhs_contracting_dims={0})");
  const Graph weights = with_weights(graph, {"v", "w"});
  EXPECT_EQ(automatic::small_products(graph, device("v100")).size(), 2u);
  EXPECT_EQ(automatic::small_products(weights, device("v100")).size(), 1u);
}

// Parts are chosen one by one, each by its own times.
TEST(AutoProducts, NothingIsSlowerThanWithCalls) {
  int fewer = 0;
  for (const char* name : {"word2vec", "fs18_fig3", "remote_trap", "fs19_fig1", "bert_tiny", "dien_tiny",
                           "bi_rnn_tiny", "transformer_tiny", "perceptron", "gpt2_step", "bert_layer"}) {
    const Graph graph = testing::dataset(name);
    for (const char* on : {"v100", "a100-sxm-80", "h200"}) {
      const FusionPlan with = planned(graph, "on", on), without = planned(graph, "off", on);
      EXPECT_LE(with.predicted_us, without.predicted_us * (1 + 1e-9)) << name << " on " << on;
      fewer += with.predicted_us < 0.9 * without.predicted_us ? 1 : 0;
      if (with.counts.library_calls == without.counts.library_calls)
        EXPECT_EQ(products_in_kernels(graph, with), 0) << name << " on " << on;
    }
  }
  EXPECT_GE(fewer, 20);
}

// FusionStitching 2019, Figure 1: what the first product gives is 16 times what the model reads.
TEST(AutoProducts, RowsOfABatchStayInABlockWhereCallsWouldMoveThem) {
  const Graph graph = testing::dataset("fs19_fig1");
  for (const char* on : {"v100", "a100-sxm-80", "h200"}) {
    EXPECT_EQ(automatic::streamed_products(graph, device(on)).size(), 2u) << on;
    EXPECT_THAT(automatic::small_products(graph, device(on)), IsEmpty()) << on;
    const FusionPlan with = make_plan(graph, device(on), "auto", {.record_decisions = true});
    EXPECT_LT(with.predicted_us * 1.6, 0.65 * planned(graph, "off", on).predicted_us) << on;
    EXPECT_EQ(with.kernels.size(), 1u) << on;
    EXPECT_EQ(with.counts.library_calls, 0) << on;
    std::vector<std::string> told;
    for (const Decision& decision : explain(graph, with, "dot_1").decisions)
      if (decision.verdict.rule == "auto.product") told.push_back(decision.verdict.why);
    EXPECT_THAT(told, ::testing::ElementsAre(HasSubstr("us by FusionStitching's templates"))) << on;
  }
  // An attention's products do more than they move.
  for (const char* name : {"bert_layer", "attention"})
    EXPECT_THAT(automatic::streamed_products(testing::dataset(name), device("a100-sxm-80")), IsEmpty());
}

TEST(AutoProducts, ExplainSaysWhatBothWaysTake) {
  const Graph graph = between(8, 64, 64);
  const FusionPlan plan = make_plan(graph, device("a100-sxm-80"), "auto", {.record_decisions = true});
  const Explanation said = explain(graph, plan, "d");
  const auto found = std::ranges::find_if(said.decisions,
                                          [](const Decision& d) { return d.verdict.rule == "auto.product"; });
  ASSERT_NE(found, said.decisions.end());
  EXPECT_TRUE(found->verdict.ok);
  for (const char* part :
       {"us with library calls", "us as sums of several threads", "us as loops of a thread"})
    EXPECT_THAT(found->verdict.why, HasSubstr(part));
}

// What an override asks for is honoured with products in kernels, or with calls.
TEST(AutoProducts, OverridesComeFirst) {
  const Graph graph = between(8, 64, 64);
  const Device on = device("a100-sxm-80");
  const FusionPlan apart = make_plan(graph, on, "auto", {.edits = {{EditKind::kForbidMerge, {"e", "r"}}}});
  for (const KernelPlan& kernel : apart.kernels) {
    const auto has = [&](const char* op) {
      return std::ranges::count(kernel.ops, graph.entry_computation().find(op)) > 0;
    };
    EXPECT_FALSE(has("e") && has("r"));
  }
  const FusionPlan blocks = make_plan(graph, on, "auto", {.edits = {{EditKind::kBlock, {"r"}, "", 128}}});
  const auto of_r = std::ranges::find_if(blocks.kernels, [&](const KernelPlan& kernel) {
    return std::ranges::count(kernel.ops, graph.entry_computation().find("r")) > 0;
  });
  ASSERT_NE(of_r, blocks.kernels.end());
  EXPECT_EQ(of_r->launch.block, 128);
}

// Products, calls that stay, and what is stored for them, in every order of kernels that random graphs have.
TEST(AutoProducts, RandomTrainingStepsArePlannedSoundly) {
  int in_kernels = 0, mixed = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Graph graph = testing::random_dots(seed, 8 + static_cast<int>(seed % 30));
    const FusionPlan plan = planned(graph, "on", seed % 2 == 0 ? "v100" : "h200");  // which verifies it
    const int products = products_in_kernels(graph, plan);
    in_kernels += products > 0 ? 1 : 0;
    mixed += products > 0 && plan.counts.library_calls > 0 ? 1 : 0;
  }
  EXPECT_GT(in_kernels, 20);
  std::cout << in_kernels << " with products in kernels, " << mixed << " of them with calls, too\n";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
