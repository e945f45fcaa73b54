// Exploring mini-batches: what is kept, what is found, and that nothing is lost when it is killed.
#include "experiments/explore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <limits>
#include <random>
#include <thread>

#include "analysis/plan/step_order.h"
#include "analysis/planners/astra/minibatches.h"
#include "analysis/verify/verify.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "experiments/store.h"
#include "runtime/tiled_products.h"
#include "tests/experiments/sample_trial.h"
#include "tests/support/astra_bindings.h"
#include "tests/support/astra_graphs.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::message_of;
using testing::model_of;

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

ExploreOptions options_of(const std::string& planner, const std::string& device = "p100-sxm2") {
  ExploreOptions options;
  options.trial.planner = planner;
  options.trial.device = device;
  options.trial.backend = "model";
  return options;
}

TEST(Explore, KeepsTheFastestMiniBatchAsAPlanThatHolds) {
  const Model model = model_of(testing::astra_lstm_cell());
  const Exploration e = explore(model, options_of("astra"));
  EXPECT_TRUE(e.done);
  EXPECT_EQ(e.minibatches[0].dimension, "default");
  for (const char* dimension : {"fusion", "kernels", "streams"})
    EXPECT_GT(e.by_dimension.count(dimension), 0u);
  for (const MiniBatch& one : e.minibatches) EXPECT_LE(e.minibatches[e.best].us, one.us);
  EXPECT_LT(e.minibatches[e.best].us, e.minibatches[0].us);
  // A library's own kernel is its fastest, so that the plan is what the mini-batch was.
  EXPECT_NEAR(e.plan.predicted_us, e.minibatches[e.best].us, 1e-9);
  EXPECT_EQ(e.plan.counts.library_calls, 1);
  EXPECT_TRUE(verify(model.graph, device(e.device), e.plan).empty());
  EXPECT_LT(e.minibatches.size(), e.trials + 2);
  EXPECT_GT(e.log10_configurations, std::log10(e.trials));
}

TEST(Explore, StreamsAreExploredBehindTheProductsOfEachStrategy) {
  const Exploration e = explore(model_of(testing::astra_chains()), options_of("astra"));
  EXPECT_TRUE(e.done);
  EXPECT_TRUE(uses_streams(e.plan));
  EXPECT_LT(e.minibatches[e.best].us, 0.6 * e.minibatches[0].us);
  EXPECT_NEAR(e.plan.predicted_us, e.minibatches[e.best].us, 1e-9);
  const Exploration conflict = explore(model_of(testing::astra_conflict()), options_of("astra"));
  EXPECT_EQ(conflict.strategies, 2u);
  std::set<std::string> strategies;
  for (const MiniBatch& one : conflict.minibatches) strategies.insert(one.bindings.at("strategy"));
  EXPECT_EQ(strategies.size(), 2u);
}

TEST(Explore, OnOneStreamTheBestIsMostlyThatOfTryingEverything) {
  int compared = 0, equal = 0;
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = model_of(seed == 0   ? testing::astra_lstm_cell()
                                 : seed == 1 ? testing::astra_conflict()
                                 : seed == 2 ? testing::astra_ladder()
                                             : testing::random_dots(seed, 12));
    const ExploreOptions options = options_of("astra-f");
    astra::MiniBatches minibatches(model.graph, device("p100-sxm2"), "astra-f", {},
                                   [](const FusionPlan& plan) {
                                     std::vector<double> us;
                                     for (const PlanStep& step : plan.steps) us.push_back(step.predicted_us);
                                     return us;
                                   });
    const astra::TreeNode& tree = minibatches.tree({});
    if (astra::configurations(tree) > 300) continue;
    double least = std::numeric_limits<double>::infinity();
    for (const astra::Bindings& bindings : testing::everything(tree))
      least = std::min(least, minibatches.run(bindings).at("strategy"));
    const Exploration e = explore(model, options);
    // Groups that share a kernel influence each other, which parallel children do not know.
    EXPECT_LE(e.minibatches[e.best].us, 1.03 * least);
    EXPECT_GE(e.minibatches[e.best].us, least - 1e-9);
    ++compared;
    equal += e.minibatches[e.best].us <= least + 1e-9 ? 1 : 0;
  }
  EXPECT_GE(8 * equal, 7 * compared) << equal << " of " << compared;
  EXPECT_GE(compared, 60);
}

TEST(Explore, SimulatedMiniBatchesAreCheckedAndGoOnWhereTheyWere) {
  const Model model = model_of(testing::astra_ladder());
  ExploreOptions options = options_of("astra", "v100-sxm2");
  options.trial.backend = "sim";
  options.trial.check = true;
  const Exploration whole = explore(model, options);
  EXPECT_TRUE(whole.done);
  EXPECT_EQ(whole.times, "simulated");
  EXPECT_EQ(whole.method, "kernels and matrix products simulated, other library calls modelled");
  EXPECT_EQ(whole.why_library, "");
  options.history = testing::test_folder() + "/history.db";
  options.batches = 2;
  EXPECT_EQ(explore(model, options).minibatches.size(), 2u);
  options.batches.reset();
  options.resume = true;
  const Exploration rest = explore(model, options);
  EXPECT_EQ(rest.resumed, 2u);
  EXPECT_EQ(rest.minibatches, whole.minibatches);
  EXPECT_EQ(rest.library_us, whole.library_us);
  // The plan is run as any other, its products by the kernels that it names.
  TrialSpec spec;
  spec.planner = "astra";
  spec.plan = rest.plan;
  spec.check = true;
  const TrialResult run = run_trial(model, spec);
  EXPECT_TRUE(run.ok());
  EXPECT_NEAR(run.run.total_us, rest.minibatches[rest.best].us, 1e-9);
  for (PlanStep& step : spec.plan->steps) step.variant.clear();
  EXPECT_NEAR(run_trial(model, spec).run.total_us, rest.library_us.value(), 1e-9);
  EXPECT_NE(rest.library_us, rest.minibatches[rest.best].us);
}

/// All times of products have one source: our kernels, simulated, where these make all of them.
TEST(Explore, ProductsOfSimulatedMiniBatchesAreOursOrAllTheLibrarys) {
  ExploreOptions options = options_of("astra-fk", "v100-sxm2");
  options.trial.backend = "sim";
  const Exploration ours = explore(model_of(testing::astra_lstm_cell()), options);
  EXPECT_EQ(ours.kernels.size(), 16u);
  EXPECT_EQ(ours.kernels[0], "tiled-64x64");
  EXPECT_THAT(ours.kernels, ::testing::Not(::testing::Contains("library")));
  EXPECT_GT(ours.by_dimension.at("kernels"), 0u);
  EXPECT_TRUE(ours.done);
  options.trial.planner = "astra-f";
  EXPECT_EQ(explore(model_of(testing::astra_lstm_cell()), options).kernels,
            std::vector<std::string>{"tiled-64x64"});
  options.trial.options.knobs["elementwise"] = "auto";
  const Exploration called = explore(model_of(testing::astra_lstm_cell()), options);
  EXPECT_EQ(called.kernels, std::vector<std::string>{"library"});
  EXPECT_EQ(called.method, "kernels simulated, library calls modelled");
  EXPECT_THAT(called.why_library, HasSubstr("elementwise=auto"));
  EXPECT_FALSE(called.library_us.has_value());
  options.trial.options.knobs.clear();
  const Model wide =
      model_of(testing::graph_of("  %x = f64[8,8]{1,0} parameter(0)\n"
                                 "  ROOT %y = f64[8,8]{1,0} dot(%x, %x), lhs_contracting_dims={1}, "
                                 "rhs_contracting_dims={0}\n"));
  EXPECT_THAT(explore(wide, options).why_library, HasSubstr("no tiled product of f64"));
  options.trial.backend = "model";
  const Exploration modelled = explore(model_of(testing::astra_lstm_cell()), options);
  EXPECT_EQ(modelled.kernels, std::vector<std::string>{"library"});
  EXPECT_EQ(modelled.why_library, "");
}

TEST(Explore, AProductsTimeIsThatOfItsSimulatedKernels) {
  const Graph graph = testing::graph_of(
      "  %x = f32[60,70]{1,0} parameter(0)\n  %w = f32[70,80]{1,0} parameter(1)\n"
      "  ROOT %y = f32[60,80]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
  ExploreOptions options = options_of("astra-fk", "v100-sxm2");
  options.trial.backend = "sim";
  options.trial.check = true;
  const Exploration e = explore(model_of(graph), options);
  SimulatedProducts products(device("v100"), false);
  TypedGemm product;
  product.gemm.m = 60;
  product.gemm.n = product.gemm.b_row = product.gemm.c_row = 80;
  product.gemm.k = product.gemm.a_row = 70;
  product.gemm.a_col = product.gemm.b_col = 1;
  ASSERT_EQ(e.minibatches.size(), 16u);
  for (const MiniBatch& one : e.minibatches) {
    const auto bound = std::find_if(one.bindings.begin(), one.bindings.end(),
                                    [](const auto& b) { return b.second.starts_with("tiled"); });
    ASSERT_NE(bound, one.bindings.end());
    EXPECT_DOUBLE_EQ(one.us, products.us(product, *tiled_product(bound->second))) << bound->second;
  }
}

/// A child explores and is killed after so long; then this process goes on to the end.
Exploration killed(const Model& model, ExploreOptions options, std::chrono::microseconds after) {
  const pid_t child = ::fork();
  if (child == 0) {
    explore(model, options);
    ::_exit(0);
  }
  std::this_thread::sleep_for(after);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  options.resume = true;
  return explore(model, options);
}

TEST(Explore, AKillAtAnyMomentLosesNothing) {
  const Model model = model_of(testing::astra_lstm_cell());
  ExploreOptions options = options_of("astra");
  const auto begin = std::chrono::steady_clock::now();
  const Exploration whole = explore(model, options);
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  const std::string folder = testing::test_folder();
  std::mt19937 random(7);
  std::size_t between = 0;
  // Twice as long: with a history it takes longer than without, on a busy machine many times as long.
  auto longest = 2 * took.count();
  for (int moment = 0; moment < 20 || (moment < 60 && between <= 5); ++moment) {
    SCOPED_TRACE(moment);
    options.history = fmt::format("{}/{}.db", folder, moment);
    const std::chrono::microseconds after(random() % longest);
    const Exploration e = killed(model, options, after);
    EXPECT_TRUE(e.done);
    EXPECT_EQ(e.minibatches, whole.minibatches);
    EXPECT_EQ(e.best, whole.best);
    EXPECT_EQ(to_text(planned_graph(model.graph, e.plan), e.plan),
              to_text(planned_graph(model.graph, whole.plan), whole.plan));
    between += e.resumed > 0 && e.resumed < whole.minibatches.size() ? 1 : 0;
    if (e.resumed == 0) longest += longest / 4;
    if (e.resumed == whole.minibatches.size()) longest -= longest / 4;
  }
  EXPECT_GT(between, 5u) << "most kills fell before the first mini-batch or behind the last";
}

TEST(Explore, AHistoryIsOfOneExploration) {
  const Model model = model_of(testing::astra_chains());
  ExploreOptions options = options_of("astra");
  options.history = testing::test_folder() + "/history.db";
  options.batches = 2;
  explore(model, options);
  EXPECT_THAT(message_of([&] { explore(model, options); }),
              AllOf(HasSubstr("has an exploration of 2 mini-batches"), HasSubstr("--resume")));
  options.resume = true;
  const auto refused = [&](const ExploreOptions& other, const Model& of) {
    return message_of([&] { explore(of, other); });
  };
  ExploreOptions other = options;
  other.trial.device = "v100-sxm2";
  EXPECT_THAT(refused(other, model), HasSubstr("is an exploration of device p100-sxm2, not v100-sxm2"));
  other = options;
  other.trial.backend = "sim";
  EXPECT_THAT(refused(other, model), HasSubstr("is an exploration of times modelled, not simulated"));
  other = options;
  other.trial.results = "another";
  EXPECT_THAT(refused(other, model), HasSubstr("is an exploration of results version"));
  other = options;
  other.trial.planner = "astra-f";
  EXPECT_THAT(refused(other, model), HasSubstr("is an exploration of planner astra, not astra-f"));
  EXPECT_THAT(refused(options, model_of(testing::astra_chains(64))),
              HasSubstr("is an exploration of model "));
  other = options;
  other.trial.backend = "another";
  EXPECT_THAT(refused(other, model), HasSubstr("known: modelled, simulated, measured"));
  other = options;
  other.trial.planner = "xla";
  EXPECT_THAT(refused(other, model), HasSubstr("has nothing to explore"));
  // None of these has changed it.
  EXPECT_EQ(explore(model, options).minibatches.size(), 4u);
}

TEST(Explore, WhatIsNoHistoryIsLeftAlone) {
  const Model model = model_of(testing::astra_chains());
  ExploreOptions options = options_of("astra-f");
  const std::string folder = testing::test_folder();
  const auto told = [&](const std::string& file) {
    options.history = folder + "/" + file;
    return message_of([&] { explore(model, options); });
  };
  write_file(
      folder + "/text",
      "a text that is long enough to be the header of a database, were it one: no. " + std::string(100, '.'));
  EXPECT_THAT(told("text"), HasSubstr("is no history of an exploration"));
  EXPECT_THAT(told("nowhere/history.db"), HasSubstr("cannot be opened"));
  Store::open(folder + "/runs.db");
  EXPECT_THAT(told("runs.db"), HasSubstr("is a database of another kind"));
  options.resume = true;
  options.history = folder + "/history.db";
  const std::size_t all = explore(model, options).minibatches.size();
  const std::string bytes = read_file(options.history);
  write_file(options.history, bytes.substr(0, bytes.size() - 4096));
  EXPECT_THAT(told("history.db"), HasSubstr("is cut off or damaged"));
  write_file(options.history, bytes);
  EXPECT_EQ(explore(model, options).minibatches.size(), all);
}

TEST(Explore, ASecondExplorerIsRefused) {
  const Model model = model_of(testing::astra_chains());
  ExploreOptions options = options_of("astra-f");
  options.history = testing::test_folder() + "/history.db";
  explore(model, options);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    sqlite3* db = nullptr;
    sqlite3_open(options.history.c_str(), &db);
    sqlite3_exec(db, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr);
    if (::write(ends[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  options.resume = true;
  EXPECT_THAT(message_of([&] { explore(model, options); }),
              HasSubstr("another exploration is writing to it"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(explore(model, options).done);
}

TEST(Explore, TheTrajectoryHasEveryMiniBatchAndTheBestSoFar) {
  const Exploration e = explore(model_of(testing::astra_lstm_cell()), options_of("astra"));
  const Figure figure = trajectory(e);
  check(figure);
  std::size_t points = 0;
  for (const FigureSeries& series : figure.series)
    if (series.mark == FigureMark::kPoints) points += series.x.size();
  EXPECT_EQ(points, e.minibatches.size());
  const FigureSeries& best = figure.series.back();
  EXPECT_EQ(*best.y.back(), e.minibatches[e.best].us);
  EXPECT_TRUE(std::is_sorted(best.y.rbegin(), best.y.rend()));
  EXPECT_THAT(methods(figure), Each("modelled"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
