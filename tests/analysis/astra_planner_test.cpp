// The rows of Astra: which products become one, on which streams, by modelled times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "analysis/explain/explain.h"
#include "analysis/judge/cost.h"
#include "analysis/judge/step_times.h"
#include "analysis/plan/step_order.h"
#include "analysis/planners/astra/planner.h"
#include "analysis/planners/astra/prices.h"
#include "analysis/verify/verify.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/substitute/derivation.h"
#include "occupancy_model/library.h"
#include "tests/core/substitute_support.h"
#include "tests/support/astra_graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr const char* kRows[] = {"astra-f", "astra-fk", "astra-fks", "astra", "astra+astitch"};

const Device& v100() { return device("v100-sxm2"); }

/// An LSTM's cell of steps one after the other, large enough that calls are worth joining.
Graph recurrent(int steps, int batch, int hidden) {
  std::string text =
      fmt::format(" h = f32[{0},{1}] parameter(0)\n c = f32[{0},{1}] parameter(1)\n", batch, hidden);
  int number = 2;
  for (const char* gate : {"i", "f", "g", "o"}) {
    text += fmt::format(" w{0} = f32[{3},{3}] parameter({1})\n u{0} = f32[{3},{3}] parameter({2})\n", gate,
                        number, number + 1, hidden);
    number += 2;
  }
  std::string state = "h", cell = "c";
  for (int t = 0; t < steps; ++t) {
    text += fmt::format(" x{0} = f32[{1},{2}] parameter({3})\n", t, batch, hidden, number++);
    for (const char* gate : {"i", "f", "g", "o"})
      text += fmt::format(
          " a{0}{1} = f32[{2},{3}] dot(x{1}, w{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
          " b{0}{1} = f32[{2},{3}] dot({4}, u{0}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
          " z{0}{1} = f32[{2},{3}] add(a{0}{1}, b{0}{1})\n s{0}{1} = f32[{2},{3}] tanh(z{0}{1})\n",
          gate, t, batch, hidden, state);
    text += fmt::format(
        " p{0} = f32[{1},{2}] multiply(si{0}, sg{0})\n q{0} = f32[{1},{2}] multiply(sf{0}, {3})\n"
        " c{0} = f32[{1},{2}] add(p{0}, q{0})\n n{0} = f32[{1},{2}] tanh(c{0})\n"
        " h{0} = f32[{1},{2}] multiply(so{0}, n{0})\n",
        t, batch, hidden, cell);
    state = fmt::format("h{}", t);
    cell = fmt::format("c{}", t);
  }
  return testing::graph_of(text + fmt::format(" ROOT r = (f32[{0},{1}], f32[{0},{1}]) tuple({2}, {3})", batch,
                                              hidden, state, cell));
}

TEST(AstraPlanner, JoinsTheGatesOfEveryStep) {
  const Graph graph = recurrent(6, 16, 256);
  const FusionPlan alone = make_plan(graph, v100(), "xla");
  EXPECT_EQ(alone.counts.library_calls, 48);
  for (const char* row : kRows) {
    const FusionPlan plan = make_plan(graph, v100(), row);
    EXPECT_EQ(plan.counts.library_calls, 6) << row;
    EXPECT_LT(plan.predicted_us, alone.predicted_us) << row;
    ASSERT_NE(plan.rewritten, nullptr);
    EXPECT_EQ(plan.rewritten->steps.front().rule, "fuse-products");
    EXPECT_EQ(plan.rewritten->steps.back().rule, "concat-in-place");
  }
}

TEST(AstraPlanner, OfTheWorkedCellOneCallIsLeft) {
  const Graph graph = testing::astra_lstm_cell();
  PlanOptions options;
  const FusionPlan plan = make_plan(graph, v100(), "astra+astitch", options);
  // [x|h] and the weights lie beside each other.
  EXPECT_EQ(plan.counts.library_calls, 1);
  EXPECT_EQ(plan.counts.memory_kernels, 1);
  options.knobs["views"] = "off";
  const FusionPlan copied = make_plan(graph, v100(), "astra+astitch", options);
  EXPECT_EQ(copied.counts.library_calls, 1);
  EXPECT_GT(copied.counts.memory_kernels, 1);
  EXPECT_GT(copied.predicted_us, plan.predicted_us);
}

TEST(AstraPlanner, NothingIsCopiedToBeBesideAnother) {
  for (const auto& [batch, hidden] : {std::pair(4, 24), std::pair(6, 50), std::pair(16, 128)}) {
    const Graph graph = recurrent(5, batch, hidden);
    const FusionPlan plan = make_plan(graph, v100(), "astra");
    ASSERT_NE(plan.rewritten, nullptr);
    for (const Node& node : plan.rewritten->graph.entry_computation().nodes)
      EXPECT_NE(node.op, Op::kConcatenate) << node.name;
  }
}

TEST(AstraPlanner, NoRowIsSlowerThanTheOneBeforeOrThanNone) {
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const Graph graph = testing::random_dots(seed, 25);
    SCOPED_TRACE(seed);
    double before = make_plan(graph, v100(), "xla").predicted_us;
    for (const char* row : {"astra-f", "astra-fk", "astra-fks"}) {
      const double us = make_plan(graph, v100(), row).predicted_us;
      EXPECT_LE(us, before + 1e-6) << row;
      before = us;
    }
    EXPECT_LE(make_plan(graph, v100(), "astra+astitch").predicted_us,
              make_plan(graph, v100(), "astitch").predicted_us + 1e-6);
  }
}

TEST(AstraPlanner, RewrittenGraphsComputeTheModel) {
  int joined = 0;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Graph graph = testing::random_dots(seed, 30);
    SCOPED_TRACE(seed);
    const FusionPlan plan = make_plan(graph, v100(), "astra-f");
    if (plan.rewritten == nullptr) continue;
    ++joined;
    const std::vector<Literal> inputs = testing::tame_inputs(graph, seed);
    EXPECT_LT(testing::largest_error(evaluate(plan.rewritten->graph, inputs), evaluate(graph, inputs)), 1e-4);
  }
  EXPECT_GT(joined, 30);
}

TEST(AstraPlanner, EveryChunkComputesTheModelNotOnlyTheBest) {
  astra::TreeOptions options;
  options.partial_sums = false;
  int places = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Graph graph = testing::random_dots(seed, 30);
    SCOPED_TRACE(seed);
    const astra::Space space = testing::space_of(graph);
    const astra::CallPrices prices(graph, v100(), space, options, false, 0);
    const std::vector<Literal> inputs = testing::tame_inputs(graph, seed);
    const std::vector<Literal> expected = evaluate(graph, inputs);
    for (std::size_t s = 0; s < space.strategies.list.size(); ++s)
      for (std::size_t which = 0; which < 3; ++which) {
        std::vector<rewriting::Place> all;
        for (const astra::StrategyGroup& group : space.strategies.list[s].groups) {
          auto chunk = prices.group(s, group.number).begin();
          std::advance(chunk, which % prices.group(s, group.number).size());
          for (const astra::PricedCall& call : chunk->second)
            if (const std::vector<NodeId> ops = astra::fused_ops(space, call); !ops.empty()) {
              all.emplace_back();
              for (const NodeId op : ops) all.back().push_back(graph.entry_computation().node(op).name);
            }
        }
        places += static_cast<int>(all.size());
        if (all.empty()) continue;
        rewriting::Derivation derivation(graph);
        derivation.apply_at(rewriting::rule_named("fuse-products"), graph.entry_computation().name, all);
        EXPECT_LT(testing::largest_error(evaluate(derivation.result().graph, inputs), expected), 1e-4);
      }
  }
  EXPECT_GT(places, 100);
}

TEST(AstraPlanner, TheBestChunksAreThoseOfTryingEverything) {
  astra::TreeOptions options;
  options.partial_sums = false;
  options.streams = 1;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const Graph graph = testing::random_dots(seed, 14);
    const astra::Space space = testing::space_of(graph);
    const astra::CallPrices prices(graph, v100(), space, options, false, 0);
    const astra::TreeNode tree = astra::space_tree(graph, v100(), FusionPlan{}, space, options);
    if (astra::configurations(tree) > 4096) continue;
    astra::ProfileIndex index;
    astra::explore(
        tree, "b0", index, [&](const astra::Bindings& b) { return prices.measure(b); }, 100000);
    astra::Bindings best;
    ASSERT_TRUE(astra::next(tree, "b0", index, best));
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < space.strategies.list.size(); ++s) {
      std::vector<astra::Bindings> all{astra::defaults(tree.children[s])};
      all[0]["strategy"] = tree.options[s];
      for (const astra::StrategyGroup& group : space.strategies.list[s].groups) {
        std::vector<astra::Bindings> longer;
        for (const astra::Bindings& b : all)
          for (const auto& [chunk, calls] : prices.group(s, group.number)) {
            longer.push_back(b);
            longer.back()[fmt::format("g{}", group.number)] = chunk;
            for (std::size_t c = 0; c < calls.size(); ++c)
              longer.back()[fmt::format("g{}/{}/{}", group.number, chunk, c)] = "library";
          }
        all = std::move(longer);
      }
      for (const astra::Bindings& b : all) least = std::min(least, prices.measure(b).at("strategy"));
    }
    EXPECT_NEAR(prices.measure(best).at("strategy"), least, 1e-6) << seed;
  }
}

TEST(AstraPlanner, ChainsRunBesideEachOther) {
  const Graph graph = testing::astra_chains();
  const FusionPlan one = make_plan(graph, device("p100-sxm2"), "astra-fk");
  const FusionPlan two = make_plan(graph, device("p100-sxm2"), "astra-fks");
  EXPECT_FALSE(uses_streams(one));
  EXPECT_TRUE(uses_streams(two));
  // p on one stream, q on the other, no waits: what the longer chain takes alone, nearly.
  for (const PlanStep& step : two.steps) EXPECT_TRUE(step.waits.empty()) << step.id;
  EXPECT_LT(two.predicted_us, 0.6 * one.predicted_us);
  EXPECT_NEAR(plan_cost(graph, device("p100-sxm2"), two).predicted_us, two.predicted_us, 1e-6);
}

TEST(AstraPlanner, AWaitThatIsDroppedIsFound) {
  int dropped = 0;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const Graph graph = testing::random_dots(seed, 25);
    const FusionPlan plan = make_plan(graph, v100(), "astra-fks");
    EXPECT_TRUE(verify(graph, v100(), plan).empty());
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      for (std::size_t w = 0; w < plan.steps[s].waits.size(); ++w) {
        FusionPlan mutant = plan;
        mutant.steps[s].waits.erase(mutant.steps[s].waits.begin() + static_cast<std::ptrdiff_t>(w));
        const Graph& planned = planned_graph(graph, plan);
        // Barriers between super-epochs wait for more than is read.
        const auto open = unordered_dependences(mutant, step_dependences(planned, mutant));
        const bool needed = std::ranges::any_of(open, [](const auto& list) { return !list.empty(); });
        const std::vector<Verdict> problems = verify(graph, v100(), mutant);
        EXPECT_EQ(!problems.empty(), needed);
        if (!needed) continue;
        EXPECT_THAT(problems, Contains(Field(&Verdict::rule, "verify.wait")));
        ++dropped;
      }
  }
  EXPECT_GT(dropped, 10);
}

TEST(AstraPlanner, SaysWhyOfEachDot) {
  const Graph graph = recurrent(3, 16, 256);
  const FusionPlan plan = make_plan(graph, v100(), "astra", {.record_decisions = true});
  const auto told = [&](const std::string& step, const std::string& subject) {
    std::string text;
    for (const Decision& d : plan.decisions)
      if (d.step == step && d.subject == subject) text += d.verdict.rule + ": " + d.verdict.why + "\n";
    return text;
  };
  EXPECT_THAT(told("astra.chunk", "ai1"), HasSubstr("astra.fused: group g"));
  EXPECT_THAT(told("astra.chunk", "ai1"), HasSubstr("of 1x4x2 products in pieces of 1x4x2"));
  EXPECT_THAT(told("astra.chunk", "ai1"), HasSubstr("; 1x1x1 "));
  EXPECT_THAT(told("astra.kernel", "ai1"), HasSubstr("128x128"));
  EXPECT_THAT(told("astra.allocation", "r"), HasSubstr("astra.strategy: 3 groups"));
}

TEST(AstraPlanner, ASavedPlanIsExplainedAndPlannedTheSame) {
  const Graph graph = recurrent(2, 16, 256);
  const FusionPlan plan = make_plan(graph, v100(), "astra");
  const FusionPlan again = make_plan(graph, v100(), "astra", as_planned(plan, false));
  EXPECT_EQ(to_text(again.rewritten->graph, again), to_text(plan.rewritten->graph, plan));
  const std::string told = to_text(explain(graph, plan, "ai1"));
  EXPECT_THAT(told, HasSubstr("rewritten by fuse-products"));
  EXPECT_THAT(told, HasSubstr("astra.fused"));
}

TEST(AstraPlanner, AModelWithoutProductsIsPlannedAsItsElementwisePlanner) {
  const Graph graph = testing::dataset("softmax");
  EXPECT_EQ(make_plan(graph, v100(), "astra-f").predicted_us, make_plan(graph, v100(), "xla").predicted_us);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
