// Plans of rewritten graphs: what they say of the user's ops, saved, read back, explained, compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "analysis/explain/diff.h"
#include "analysis/explain/explain.h"
#include "analysis/json/plan_json.h"
#include "analysis/planners/planner.h"
#include "analysis/verify/verify.h"
#include "core/base/error.h"
#include "core/substitute/rule.h"
#include "tests/support/fission_graphs.h"
#include "tests/support/graphs.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using ::testing::HasSubstr;
using testing::softmax_between_products;

FusionPlan fissioned(const Graph& graph, const std::string& fission = "softmax") {
  return make_plan(graph, device("v100-sxm2"), "tvm+fission",
                   {.knobs = {{"fission", fission}}, .record_decisions = true});
}

TEST(FissionRewrite, TheSumOfASoftmaxIsAProductAndTheKernelOfTheDivisionSmaller) {
  const Graph graph = softmax_between_products();
  const FusionPlan tvm = make_plan(graph, device("v100-sxm2"), "tvm"), plan = fissioned(graph);
  EXPECT_EQ(tvm.counts.memory_kernels, 4);
  EXPECT_EQ(plan.counts.memory_kernels, 4);
  EXPECT_EQ(plan.counts.library_calls, 2);
  EXPECT_LT(plan.predicted_us, 0.96 * tvm.predicted_us);
  ASSERT_NE(plan.rewritten, nullptr);
  EXPECT_EQ(planned_graph(graph, plan).entry_computation().find("p"), kNoNode);
  EXPECT_EQ(&model_graph(planned_graph(graph, plan), plan), plan.rewritten->model.get());
}

TEST(FissionRewrite, OffIsTvm) {
  const Graph graph = softmax_between_products();
  const FusionPlan plan = fissioned(graph, "off");
  EXPECT_EQ(plan.rewritten, nullptr);
  EXPECT_EQ(to_text(graph, plan).substr(to_text(graph, plan).find("memory kernels")),
            to_text(graph, make_plan(graph, device("v100-sxm2"), "tvm"))
                .substr(to_text(graph, make_plan(graph, device("v100-sxm2"), "tvm")).find("memory kernels")));
}

TEST(FissionRewrite, ASoftmaxThatNoProductReadsHasItsSumAsAProduct) {
  const Graph graph = dataset("softmax_tiny");
  const FusionPlan plan = fissioned(graph);
  EXPECT_EQ(make_plan(graph, device("v100"), "tvm").counts.library_calls, 0);
  EXPECT_EQ(plan.counts.library_calls, 1);
  EXPECT_TRUE(verify(graph, device("v100-sxm2"), plan).empty());
}

TEST(FissionRewrite, SavedPlansGiveTheSamePlanBack) {
  const auto schema = testing::JsonSchema::read("docs/schema/plan.schema.json");
  for (const char* model : {"softmax_block_tiny", "linear_attention_tiny", "bert_tiny"}) {
    const Graph graph = dataset(model);
    const FusionPlan plan = fissioned(graph);
    ASSERT_NE(plan.rewritten, nullptr) << model;
    const std::string text = plan_document(graph, plan).dump(2);
    EXPECT_THAT(schema.problems(nlohmann::json::parse(text)), ::testing::IsEmpty());
    const FusionPlan back = plan_from_json(graph, text, "plan.json");
    EXPECT_EQ(plan_document(graph, back).dump(2), text) << model;
    EXPECT_TRUE(verify(graph, device("v100-sxm2"), back).empty());
    EXPECT_EQ(to_text(graph, back), to_text(graph, plan));
  }
}

TEST(FissionRewrite, SavedPlansOfOtherStepsAreRefused) {
  const Graph graph = softmax_between_products();
  const auto message = [&](auto change) {
    auto document = plan_to_json(graph, fissioned(graph));
    change(document);
    try {
      plan_from_json(graph, document.dump(), "plan.json");
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message([](auto& d) { d["rewrites"][0]["at"][0][0] = "scores"; }),
              HasSubstr("rewrites[0]: step scale-out-of-dot at scores, p does not fit the model"));
  EXPECT_THAT(message([](auto& d) { d["rewrites"][0]["rule"] = "scale"; }),
              HasSubstr("no rule is called 'scale'"));
  EXPECT_THAT(message([](auto& d) { d["rewritten_sha256"] = "0"; }),
              HasSubstr("its rewrites give another graph"));
  EXPECT_THAT(message([](auto& d) { d.erase("rewritten_sha256"); }),
              HasSubstr("'rewritten_sha256' is missing"));
}

TEST(FissionRewrite, EveryOpOfTheModelIsPlacedOrItsReplacementNamed) {
  for (const char* model : {"softmax_block_tiny", "linear_attention_tiny", "bert_tiny"}) {
    const Graph graph = dataset(model);
    const FusionPlan plan = fissioned(graph);
    const Computation& now = planned_graph(graph, plan).entry_computation();
    int gone = 0;
    for (const Node& node : graph.entry_computation().nodes) {
      const Explanation e = explain(graph, plan, node.name);
      if (now.find(node.name) != kNoNode) {
        EXPECT_EQ(e.op, node.name);
        continue;
      }
      ++gone;
      ASSERT_FALSE(e.became.empty()) << node.name;
      EXPECT_THAT(e.became[0], HasSubstr(node.name + ": rewritten by "));
    }
    EXPECT_GT(gone, 0) << model;
    for (const Node& node : now.nodes) EXPECT_EQ(explain(graph, plan, node.name).op, node.name);
  }
  const Graph graph = softmax_between_products();
  EXPECT_THAT(to_text(explain(graph, fissioned(graph), "p")),
              HasSubstr("p: rewritten by scale-out-of-dot with o"));
}

FusionPlan edited(const Graph& graph, const char* planner, const std::string& fission,
                  std::vector<Edit> edits) {
  return make_plan(graph, device("v100-sxm2"), planner,
                   {.knobs = {{"fission", fission}}, .edits = std::move(edits), .record_decisions = true});
}

/// How many steps are taken at the op, of this rule or of any.
int steps_at(const FusionPlan& plan, const std::string& op, const std::string& rule = "") {
  int result = 0;
  for (const rewriting::Rewrite& step :
       plan.rewritten ? plan.rewritten->steps : std::vector<rewriting::Rewrite>{})
    for (const rewriting::Place& place : step.at)
      result += place.front() == op && (rule.empty() || step.rule == rule) ? 1 : 0;
  return result;
}

TEST(FissionEdits, ARewritingIsTakenWhereItIsAskedForAndNoOther) {
  const Graph graph = softmax_between_products();
  const Edit edit{EditKind::kRewrite, {"o"}, "softmax-dot", 0};
  for (const char* planner : {"tvm+fission", "korch", "fission"}) {
    SCOPED_TRACE(planner);
    EXPECT_EQ(edited(graph, planner, "off", {}).rewritten, nullptr);
    const FusionPlan plan = edited(graph, planner, "off", {edit});
    EXPECT_GT(steps_at(plan, "o"), 0);
    EXPECT_EQ(planned_graph(graph, plan).entry_computation().find("p"), kNoNode);
    const std::string text = plan_document(graph, plan).dump(2);
    const FusionPlan back = plan_from_json(graph, text, "plan.json");
    EXPECT_EQ(back.edits, plan.edits);
    EXPECT_EQ(plan_document(graph, back).dump(2), text);
    EXPECT_TRUE(verify(graph, device("v100-sxm2"), back).empty());
  }
  // The search refuses it by price; asked for, it stays.
  EXPECT_EQ(edited(graph, "fission", "on", {}).rewritten, nullptr);
  EXPECT_GT(steps_at(edited(graph, "fission", "on", {edit}), "o"), 0);
}

TEST(FissionEdits, AForbiddenRewritingIsNotTakenThere) {
  const Graph graph = softmax_between_products();
  const FusionPlan plan =
      edited(graph, "tvm+fission", "softmax", {{EditKind::kForbidRewrite, {"o"}, "softmax-dot", 0}});
  EXPECT_EQ(steps_at(plan, "o"), 0);
  EXPECT_NE(planned_graph(graph, plan).entry_computation().find("p"), kNoNode);
  // A step of it forbidden, the whole is not taken.
  const FusionPlan step =
      edited(graph, "tvm+fission", "softmax", {{EditKind::kForbidRewrite, {"o"}, "scale-out-of-dot", 0}});
  EXPECT_EQ(steps_at(step, "o"), 0);
  // Where the search takes a rule by itself.
  const Graph model = testing::sum_behind_a_product();
  const FusionPlan free = edited(model, "fission", "on", {});
  ASSERT_NE(free.rewritten, nullptr);
  std::vector<Edit> forbid;
  for (const rewriting::Rewrite& taken : free.rewritten->steps)
    for (const rewriting::Place& place : taken.at)
      if (taken.rule != "tidy") forbid.push_back({EditKind::kForbidRewrite, {place.front()}, taken.rule, 0});
  ASSERT_FALSE(forbid.empty());
  std::erase_if(forbid, [](const Edit& edit) { return rewriting::rule_named(edit.to).tidy; });
  forbid.resize(1);
  const FusionPlan without = edited(model, "fission", "on", forbid);
  EXPECT_EQ(steps_at(without, forbid[0].ops[0], forbid[0].to), 0);
  EXPECT_GE(without.predicted_us, free.predicted_us);
}

TEST(FissionEdits, WhatCannotBeDoneIsRefusedInOneLine) {
  const Graph graph = softmax_between_products();
  const auto refusal = [&](const char* planner, EditKind kind, const char* op, const char* rule) {
    try {
      edited(graph, planner, "softmax", {{kind, {op}, rule, 0}});
    } catch (const Error& error) {
      return error.message() + " | " + error.hint();
    }
    return std::string("accepted");
  };
  EXPECT_THAT(
      refusal("korch", EditKind::kRewrite, "scores", "softmax-dot"),
      ::testing::AllOf(HasSubstr("override 'rewrite scores by softmax-dot': softmax-dot does not hold there"),
                       HasSubstr(", if ")));
  EXPECT_THAT(refusal("korch", EditKind::kRewrite, "sxores", "softmax-dot"),
              HasSubstr("did you mean scores?"));
  EXPECT_THAT(refusal("korch", EditKind::kRewrite, "o", "softmax-dit"),
              HasSubstr("no rule is called 'softmax-dit'"));
  EXPECT_THAT(refusal("korch", EditKind::kForbidRewrite, "nowhere", "softmax-dot"),
              HasSubstr("no op is called 'nowhere'"));
  EXPECT_THAT(refusal("korch", EditKind::kForbidRewrite, "o", "neutral"),
              HasSubstr("is one of the tidy rules"));
  EXPECT_THAT(refusal("korch", EditKind::kSplit, "o", ""), HasSubstr("it honours rewrite, forbid_rewrite"));
  try {
    make_plan(graph, device("v100-sxm2"), "tvm", {.edits = {{EditKind::kRewrite, {"o"}, "softmax-dot", 0}}});
    FAIL() << "tvm rewrites nothing";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("planner tvm cannot honour rewrite"));
  }
}

TEST(FissionRewrite, ADiffNamesTheModelsOpsAlone) {
  for (const char* model : {"softmax_block_tiny", "bert_tiny"}) {
    const Graph graph = dataset(model);
    std::set<std::string> names;
    for (const Node& node : graph.entry_computation().nodes) names.insert(node.name);
    const FusionPlan tvm = make_plan(graph, device("v100-sxm2"), "tvm", {.record_decisions = true});
    const FusionPlan plan = fissioned(graph);
    for (const PlanDiff& result : {diff(graph, tvm, plan), diff(planned_graph(graph, plan), plan, tvm)}) {
      EXPECT_GT(result.changed.size() + result.added.size() + result.removed.size(), 0u);
      const auto expect_known = [&](const std::vector<std::string>& ops) {
        for (const std::string& op : ops) EXPECT_TRUE(names.contains(op)) << op;
      };
      for (const auto& kernels : {result.added, result.removed})
        for (const DiffKernel& kernel : kernels) expect_known(kernel.ops);
      for (const KernelChange& change : result.changed) {
        expect_known(change.a.ops);
        expect_known(change.b.ops);
        expect_known(change.gained);
        expect_known(change.lost);
      }
      for (const MovedOp& moved : result.moved) expect_known({moved.op});
      for (const Boundary& boundary : result.boundaries) expect_known({boundary.producer, boundary.consumer});
    }
    EXPECT_EQ(diff(graph, plan, plan).same_kernels, static_cast<int>(plan.kernels.size()));
  }
}

TEST(FissionRewrite, StepsAreDecisionsAndReplanningTakesThemAgain) {
  const Graph graph = softmax_between_products();
  const FusionPlan plan = fissioned(graph);
  const auto rewrites = [](const FusionPlan& of) {
    return std::ranges::count_if(of.decisions, [](const Decision& d) { return d.step == "rewrite"; });
  };
  EXPECT_EQ(rewrites(plan), 3);
  EXPECT_EQ(plan.decisions[0].verdict.rule, "rewrite.scale-out-of-dot");
  PlanOptions again = as_planned(plan, false);
  EXPECT_EQ(plan_to_json(graph, make_plan(graph, device("v100-sxm2"), "tvm+fission", again)).dump(), [&] {
    FusionPlan bare = plan;
    bare.decisions.clear();
    return plan_to_json(graph, bare).dump();
  }());
  EXPECT_THROW(make_plan(graph, device("v100-sxm2"), "tvm", again), Error);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
