// The binary program of kernel orchestration: optimal, its candidates those of execution states, the worked
// examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>
#include <set>

#include "analysis/planners/fission/program.h"
#include "analysis/planners/planner.h"
#include "tests/support/fission_graphs.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using fission::Candidate;
using fission::has;
using fission::Mask;
using fission::only;
using fission::Window;
using testing::graph_of;
using ::testing::HasSubstr;

/// A random graph of so many primitives: each reads up to three before it.
Window random_window(std::mt19937& random, int size) {
  Window window;
  Mask read = 0;
  for (int i = 0; i < size; ++i) {
    Mask producers = 0;
    for (int n = static_cast<int>(random() % 4); n > 0 && i > 0; --n)
      producers |= only(static_cast<int>(random() % static_cast<unsigned>(i)));
    Mask ancestors = only(i);
    for (int p = 0; p < i; ++p)
      if (has(producers, p)) ancestors |= window.ancestors[static_cast<std::size_t>(p)];
    window.ops.push_back(i);
    window.producers.push_back(producers);
    window.ancestors.push_back(ancestors);
    window.outside.push_back(0);
    read |= producers;
  }
  for (int i = 0; i < size; ++i)
    if (!has(read, i) || random() % 5 == 0) window.required |= only(i);
  return window;
}

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

/// All cones, each with a price that grows with what it computes, but not evenly.
std::vector<Candidate> random_candidates(const Window& window, std::mt19937& random) {
  std::vector<Candidate> result;
  for (int sink = 0; sink < window.size(); ++sink)
    for (const Mask set : fission::cones(window, sink, ~Mask{0}, 64, kAll)) {
      if (std::popcount(set) > 1 && random() % 4 == 0) continue;
      result.push_back({sink, set, fission::inputs_of(window, set),
                        1 + std::popcount(set) * 0.001 * static_cast<double>(random() % 1000)});
    }
  return result;
}

/// The least cost by trying every kernel of every value that is needed, readers first.
double least(const Window& window, const std::vector<Candidate>& candidates, int next, Mask needed,
             double spent, double best) {
  while (next >= 0 && !has(needed, next)) --next;
  if (next < 0) return std::min(spent, best);
  for (const Candidate& candidate : candidates)
    if (candidate.sink == next && spent + candidate.us < best)
      best = least(window, candidates, next - 1, needed | candidate.inputs, spent + candidate.us, best);
  return best;
}

TEST(FissionProgram, OptimaAreThoseOfTryingEverything) {
  std::mt19937 random(1);
  int computed_again = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const Window window = random_window(random, 2 + static_cast<int>(random() % 8));
    const std::vector<Candidate> candidates = random_candidates(window, random);
    const fission::Selection selection = fission::select(window, candidates);
    ASSERT_TRUE(selection.optimal);
    ASSERT_TRUE(fission::is_complete(window, candidates, selection.chosen));
    if (trial % 4 == 0) {  // the program as CBC has it
      const fission::Selection by_cbc = fission::select(window, candidates, {0, 100'000});
      ASSERT_TRUE(by_cbc.optimal);
      ASSERT_EQ(by_cbc.chosen, selection.chosen) << "trial " << trial;
    }
    const double best = least(window, candidates, window.size() - 1, window.required, 0,
                              std::numeric_limits<double>::infinity());
    // Prices are rounded to nanoseconds, half of one a kernel at most.
    ASSERT_NEAR(selection.us, best, 0.001 * window.size()) << "trial " << trial;
    ASSERT_LE(selection.bound_us, best + 0.001 * window.size());
    int ops = 0;
    Mask all = 0;
    for (const int k : selection.chosen) {
      ops += std::popcount(candidates[static_cast<std::size_t>(k)].ops);
      all |= candidates[static_cast<std::size_t>(k)].ops;
    }
    computed_again += ops > std::popcount(all) ? 1 : 0;
  }
  EXPECT_GT(computed_again, 100);  // redundant computation is a solution like any other
}

TEST(FissionProgram, WithoutNodesThereIsStillACompleteChoice) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const Window window = random_window(random, 9);
    const std::vector<Candidate> candidates = random_candidates(window, random);
    const fission::Selection selection = fission::select(window, candidates, {0, trial % 2});
    ASSERT_TRUE(fission::is_complete(window, candidates, selection.chosen));
  }
}

TEST(FissionProgram, ConvexConesAreTheDifferencesOfExecutionStatesWithOneOutput) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 400; ++trial) {
    const Window window = random_window(random, 2 + static_cast<int>(random() % 8));
    std::vector<Mask> states;
    for (Mask set = 0; set < (Mask{1} << window.size()); ++set) {
      bool closed = true;
      for (int i = 0; i < window.size(); ++i)
        closed = closed && (!has(set, i) || (window.producers[static_cast<std::size_t>(i)] & ~set) == 0);
      if (closed) states.push_back(set);
    }
    std::set<Mask> differences;
    for (const Mask small : states)
      for (const Mask large : states) {
        if ((small & ~large) != 0 || small == large) continue;
        const Mask set = large & ~small;
        Mask read = 0;
        for (int i = 0; i < window.size(); ++i)
          if (has(set, i)) read |= window.producers[static_cast<std::size_t>(i)];
        if (std::popcount(set & ~read) == 1) differences.insert(set);
      }
    std::set<Mask> cones;
    for (int sink = 0; sink < window.size(); ++sink)
      for (const Mask set : fission::cones(window, sink, ~Mask{0}, 64, kAll))
        if (fission::is_convex(window, set)) {
          EXPECT_TRUE(cones.insert(set).second);
        }
    ASSERT_EQ(cones, differences) << "trial " << trial;
  }
}

FusionPlan plan_of(const Graph& graph, const char* planner, const char* fission) {
  return make_plan(graph, device("v100-sxm2"), planner,
                   {.knobs = {{"fission", fission}}, .record_decisions = true});
}

TEST(FissionProgram, AnExponentialIsComputedTwiceWhereThatIsCheaper) {
  const Graph graph = testing::softmax_between_products();
  const FusionPlan plan = plan_of(graph, "korch", "off");
  EXPECT_EQ(testing::outputs(graph, plan), (std::vector<std::string>{"mx", "ex", "sum", "p"}));
  EXPECT_LT(plan.predicted_us, make_plan(graph, device("v100-sxm2"), "tvm").predicted_us);
  const astitch::Nodes nodes = astitch::node_facts(graph);
  const std::vector<Window> windows = fission::windows(nodes);
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].size(), 5);
  int computes_exponentials = 0;
  for (const KernelPlan& kernel : plan.kernels)
    computes_exponentials += std::ranges::count(kernel.ops, testing::op(graph, "ex"));
  EXPECT_EQ(computes_exponentials, 2);
}

FusionPlan recomputing(const Graph& graph, const char* on) {
  return make_plan(graph, device(on), "korch",
                   {.knobs = {{"fission", "off"}, {"candidates", "recompute"}}, .record_decisions = true});
}

TEST(FissionProgram, AKernelRoundWhatOthersComputeIsACandidateWhereItMayRecompute) {
  const Graph graph = testing::softmax_between_products();
  const FusionPlan plan = recomputing(graph, "v100-sxm2");
  // The division computes the exponentials again that the sum, which it reads, is made of: no difference of
  // execution states.
  EXPECT_EQ(testing::outputs(graph, plan), (std::vector<std::string>{"mx", "sum", "p"}));
  EXPECT_LT(plan.predicted_us, plan_of(graph, "korch", "off").predicted_us);
  EXPECT_EQ(std::ranges::count(plan.decisions, "korch.not-convex",
                               [](const Decision& d) { return d.verdict.rule; }),
            0);
}

TEST(FissionProgram, MoreCandidatesAreNeverDearer) {
  int cheaper = 0, optimal = 0;
  for (const char* model :
       {"softmax_block", "bert_layer", "fig7", "attention", "layer_norm_grad", "column_sum"})
    for (const char* on : {"v100-sxm2", "h200"}) {
      const Graph graph = testing::dataset(model);
      const auto planned = [&](const char* candidates) {
        return make_plan(
            graph, device(on), "korch",
            {.knobs = {{"fission", "off"}, {"candidates", candidates}}, .record_decisions = true});
      };
      const auto gave_up = [](const FusionPlan& plan) {
        return std::ranges::any_of(plan.decisions,
                                   [](const Decision& d) { return d.verdict.rule == "korch.gap"; });
      };
      const FusionPlan paper = planned("paper"), recompute = planned("recompute");
      if (gave_up(recompute)) continue;
      ++optimal;
      // Prices are whole nanoseconds a kernel.
      EXPECT_LE(recompute.predicted_us,
                paper.predicted_us + 0.001 * static_cast<double>(paper.steps.size() + recompute.steps.size()))
          << model << " " << on;
      cheaper += recompute.predicted_us < 0.99 * paper.predicted_us ? 1 : 0;
    }
  EXPECT_GE(optimal, 10);
  EXPECT_GE(cheaper, 4);
}

TEST(FissionProgram, ACopyOfAnIndexMapIsAKernel) {
  const Graph graph = graph_of(R"(
  v = f32[100] parameter(0)
  b = f32[100,4] broadcast(v), dimensions={0}
  ROOT c = f32[100,4] copy(b)
)");
  const FusionPlan plan = plan_of(graph, "korch", "off");
  EXPECT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.counts.copies, 0);
}

TEST(FissionProgram, EachSumComputesTheSquaresForItself) {
  const Graph graph = testing::sums_of_squares();
  const FusionPlan plan = plan_of(graph, "korch", "off");
  EXPECT_EQ(testing::outputs(graph, plan), (std::vector<std::string>{"r", "c"}));
  EXPECT_LT(plan.predicted_us, 0.6 * make_plan(graph, device("v100-sxm2"), "tvm").predicted_us);
}

TEST(FissionProgram, TheProgramsCostIsThePlans) {
  for (const char* model : {"softmax_block", "bert_layer", "layer_norm_grad"}) {
    const Graph graph = testing::dataset(model);
    const FusionPlan plan = plan_of(graph, "korch", "off");
    double kernels = 0, all = 0;
    for (const PlanStep& step : plan.steps) {
      all += step.predicted_us + device("v100-sxm2").launch_gap_us;
      if (step.kind != StepKind::kLibrary) kernels += step.predicted_us + device("v100-sxm2").launch_gap_us;
    }
    EXPECT_NEAR(plan.predicted_us, all - device("v100-sxm2").launch_gap_us, 1e-6);
    double said = 0;
    for (const Decision& d : plan.decisions) {
      if (d.verdict.rule != "korch.program") continue;
      const std::string& why = d.verdict.why;
      said += std::stod(why.substr(why.find("kernels of ") + 11));
    }
    EXPECT_NEAR(said, kernels, 0.01 * static_cast<double>(plan.steps.size())) << model;
  }
}

TEST(FissionProgram, IsNeverDearerThanTvm) {
  for (const char* model :
       {"softmax_block", "bert_layer", "fig7", "attention", "crnn_tiny", "layer_norm_grad", "adam_tiny",
        "moe_layer", "mlp_training", "column_sum", "segformer_b0_tiny"}) {
    const Graph graph = testing::dataset(model);
    for (const char* on : {"v100-sxm2", "a100-sxm-80", "h200"}) {
      const double tvm = make_plan(graph, device(on), "tvm").predicted_us;
      const FusionPlan plan = make_plan(graph, device(on), "korch", {.knobs = {{"fission", "off"}}});
      EXPECT_LE(plan.predicted_us, tvm + 0.001 * static_cast<double>(plan.steps.size()))
          << model << " " << on;
    }
  }
}

TEST(FissionWindows, LargeComponentsAreCutWhereFewestBytesCross) {
  // A chain of 200: halves of windows joined by a narrow value at every tenth op.
  std::string text = "p = f32[1024,64] parameter(0)\n z = f32[] constant(0)\n a0 = f32[1024,64] tanh(p)\n";
  std::string last = "a0";
  for (int i = 1; i < 120; ++i) {
    const std::string name = "a" + std::to_string(i);
    if (i % 40 == 0) {
      text += "s" + name + " = f32[1024] reduce(" + last + ", z), dimensions={1}, to_apply=sum\n";
      text += "b" + name + " = f32[1024,64] broadcast(s" + name + "), dimensions={0}\n";
      text += name + " = f32[1024,64] tanh(b" + name + ")\n";
    } else {
      text += name + " = f32[1024,64] tanh(" + last + ")\n";
    }
    last = name;
  }
  text += "ROOT r = f32[1024,64] negate(" + last + ")";
  const Graph graph = graph_of(text);
  const astitch::Nodes nodes = astitch::node_facts(graph);
  const std::vector<Window> windows = fission::windows(nodes);
  ASSERT_EQ(windows.size(), 3u);
  for (const Window& window : windows) EXPECT_LE(window.size(), fission::kMostPrimitives);
  EXPECT_EQ(nodes.name(windows[0].ops.back()), "sa40");
  EXPECT_EQ(nodes.name(windows[1].ops.back()), "sa80");
  const FusionPlan plan = plan_of(graph, "korch", "off");
  EXPECT_LE(plan.predicted_us, make_plan(graph, device("v100-sxm2"), "tvm").predicted_us + 0.01);
}

/// Windows are priced as threads come: what one learns another takes.
TEST(FissionProgram, APriceDoesNotFollowFromWhatWasPricedBefore) {
  for (const char* model : {"var_encoder_tiny", "bi_rnn_tiny", "layer_norm_grad"}) {
    const Graph graph = testing::dataset(model);
    const Device& target = device("h200");
    const astitch::Nodes nodes = astitch::node_facts(graph);
    const std::vector<fission::Window> windows = fission::windows(nodes);
    fission::Prices known(nodes, target);
    for (const fission::Window& window : windows) fission::candidates(window, known, {}, {});
    for (const fission::Window& window : windows) {
      fission::Prices alone(nodes, target);
      const auto first = fission::candidates(window, alone, {}, {});
      const auto again = fission::candidates(window, known, {}, {});
      ASSERT_EQ(first.size(), again.size()) << model;
      for (std::size_t k = 0; k < first.size(); ++k) {
        EXPECT_EQ(first[k].ops, again[k].ops) << model;
        EXPECT_EQ(first[k].us, again[k].us) << model;
      }
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
