#include "analysis/forms/alike.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/explain/explain.h"
#include "analysis/forms/best_kernel.h"
#include "analysis/forms/search.h"
#include "analysis/json/plan_json.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/fuzz.h"
#include "tests/support/graphs.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

constexpr const char* kSum =
    "HloModule deep\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n";

/// Means of rows and of columns taken away in turn: so many reductions, each of what the last one left.
Graph rows_and_columns(int reductions) {
  std::string text =
      std::string(kSum) + "ENTRY main {\n p = f32[64,128] parameter(0)\n z = f32[] constant(0)\n";
  std::string last = "p";
  for (int i = 0; i < reductions; ++i) {
    const bool rows = i % 2 == 0;
    text += fmt::format(" r{0} = f32[{1}] reduce({2}, z), dimensions={{{3}}}, to_apply=sum\n", i,
                        rows ? 64 : 128, last, rows ? 1 : 0);
    text += fmt::format(" b{0} = f32[64,128] broadcast(r{0}), dimensions={{{1}}}\n", i, rows ? 0 : 1);
    text += fmt::format(" v{0} = f32[64,128] subtract({1}, b{0})\n", i, last);
    last = fmt::format("v{}", i);
  }
  return canonicalize(parse_hlo(text + " ROOT o = f32[64,128] negate(" + last + ")\n}\n", "deep.hlo"));
}

/// Softmaxes of equal size, the last of `other` ops.
Graph softmaxes(int count, const std::string& last) {
  std::string text = std::string(kSum) + "ENTRY main {\n z = f32[] constant(0)\n", roots;
  for (int i = 0; i < count; ++i) {
    text += fmt::format(" p{0} = f32[512,256] parameter({0})\n", i);
    text += fmt::format(" e{0} = f32[512,256] {1}(p{0})\n", i, i == count - 1 ? last : "exponential");
    text += fmt::format(" s{0} = f32[512] reduce(e{0}, z), dimensions={{1}}, to_apply=sum\n", i);
    text += fmt::format(" b{0} = f32[512,256] broadcast(s{0}), dimensions={{0}}\n", i);
    text += fmt::format(" d{0} = f32[512,256] divide(e{0}, b{0})\n", i);
    roots += fmt::format("{}d{}", i > 0 ? ", " : "", i);
  }
  std::string shapes = "f32[512,256]";
  for (int i = 1; i < count; ++i) shapes += ", f32[512,256]";
  return canonicalize(
      parse_hlo(fmt::format("{} ROOT o = ({}) tuple({})\n}}\n", text, shapes, roots), "softmaxes.hlo"));
}

std::string plan_text(const Graph& graph, const std::string& planner, bool recording) {
  PlanOptions options;
  options.record_decisions = recording;
  FusionPlan plan = make_plan(graph, device("v100"), planner, options);
  plan.decisions.clear();
  return plan_document(graph, plan).dump();
}

std::vector<std::string> keys_of(const Graph& graph) {
  const Nodes nodes = node_facts(graph);
  Recorder silent(false);
  std::vector<std::string> keys;
  for (const StitchOp& op : find_scope(nodes, Options().max_ops, silent).stitch_ops)
    keys.push_back(likeness(nodes, op, {}).value().key);
  return keys;
}

// Decisions name ops, so nothing is taken over from what is alike while they are recorded.
TEST(Alike, WhatIsTakenOverIsWhatWouldHaveBeenPlanned) {
  for (const std::string planner : {"astitch", "auto"}) {
    EXPECT_EQ(plan_text(rows_and_columns(200), planner, false),
              plan_text(rows_and_columns(200), planner, true));
    EXPECT_EQ(plan_text(softmaxes(4, "exponential"), planner, false),
              plan_text(softmaxes(4, "exponential"), planner, true));
    for (const std::string name : {"bert_layer", "adam_step_tiny", "decoder_layer_tiny"})
      EXPECT_EQ(plan_text(testing::dataset(name), planner, false),
                plan_text(testing::dataset(name), planner, true))
          << name;
  }
}

TEST(Alike, RandomGraphsArePlannedAsWithoutTakingOver) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Graph graph = canonicalize(parse_hlo(testing::planned_hlo(seed), "random.hlo"));
    EXPECT_EQ(plan_text(graph, "astitch", false), plan_text(graph, "astitch", true)) << seed;
  }
}

TEST(Alike, EqualSoftmaxesAreAlike) {
  const std::vector<std::string> keys = keys_of(softmaxes(3, "exponential"));
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_EQ(keys[1], keys[2]);
}

TEST(Alike, AnotherOpIsNotAlike) {
  const std::vector<std::string> keys = keys_of(softmaxes(3, "tanh"));
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_NE(keys[1], keys[2]);
}

TEST(Alike, OverridesTellTheStitchOpsApartThatTheyName) {
  const Graph graph = softmaxes(2, "exponential");
  const Nodes nodes = node_facts(graph);
  Recorder silent(false);
  const Scope scope = find_scope(nodes, Options().max_ops, silent);
  Constraints wanted;
  wanted.block[scope.stitch_ops[0].members.front()] = 256;
  EXPECT_FALSE(likeness(nodes, scope.stitch_ops[0], wanted).has_value());
  EXPECT_TRUE(likeness(nodes, scope.stitch_ops[1], wanted).has_value());
}

TEST(Alike, PartsOfADeepKernelAreSearchedForOnce) {
  const Graph graph = rows_and_columns(200);
  const Nodes nodes = node_facts(graph);
  Recorder silent(false);
  const StitchOp op = find_scope(nodes, Options().max_ops, silent).stitch_ops.at(0);
  Options options;
  options.tuned = true;
  const auto parts_of = [](const Searched& searched) {
    std::size_t parts = 0;
    std::vector<const Searched*> open{&searched};
    while (!open.empty()) {
      const Searched* at = open.back();
      open.pop_back();
      ++parts;
      for (const Searched& part : at->best().parts) open.push_back(&part);
    }
    return parts;
  };
  const std::size_t apart = parts_of(search(nodes, op, device("v100"), options));
  KnownKernels known;
  options.known = &known;
  EXPECT_LT(parts_of(search(nodes, op, device("v100"), options)), apart);
}

TEST(Alike, AnOpIsExplainedAsIfAllDecisionsWereRecorded) {
  const Graph graph = rows_and_columns(60);
  for (const char* planner : {"astitch", "auto"}) {
    const FusionPlan all = make_plan(graph, device("v100"), planner, {.record_decisions = true});
    for (const std::string op : {"v3", "b21", "r40", "o"}) {
      PlanOptions options{.record_decisions = true};
      options.decisions_about = std::vector{op};
      const FusionPlan about = make_plan(graph, device("v100"), planner, options);
      EXPECT_EQ(to_text(explain(graph, about, op)), to_text(explain(graph, all, op))) << planner;
      EXPECT_LT(about.decisions.size(), all.decisions.size()) << planner << " " << op;
    }
  }
}

TEST(Alike, AnOverrideChangesTheKernelItNamesAlone) {
  const Graph graph = softmaxes(3, "exponential");
  for (const char* planner : {"astitch", "auto", "fusionstitching"}) {
    SCOPED_TRACE(planner);
    PlanOptions options;
    options.edits = {{EditKind::kBlock, {"d1"}, {}, 128}};
    const FusionPlan plan = make_plan(graph, device("v100"), planner, options);
    const FusionPlan without = make_plan(graph, device("v100"), planner);
    ASSERT_EQ(plan.kernels.size(), without.kernels.size());
    const NodeId named = graph.entry_computation().find("d1");
    for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
      const bool is_named = std::ranges::count(plan.kernels[k].ops, named) > 0;
      EXPECT_EQ(plan.kernels[k].launch.block, is_named ? 128 : without.kernels[k].launch.block);
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
