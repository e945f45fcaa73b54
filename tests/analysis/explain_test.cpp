#include "analysis/explain/explain.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/explain/boundaries.h"
#include "analysis/explain/what_if.h"
#include "analysis/plan/recorder.h"
#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Explanation of(const char* model, const char* planner, const char* op) {
  const Graph graph = dataset(model);
  return explain(graph, make_plan(graph, device("v100"), planner, {.record_decisions = true}), op);
}

TEST(Explain, SaysWhereAnOpIsAndWhyNotElsewhere) {
  const Explanation power = of("fig7", "xla", "power.1");
  ASSERT_EQ(power.placements.size(), 1u);
  EXPECT_EQ(power.placements[0].role, "dominant");
  EXPECT_EQ(power.placements[0].kernel_name, "power_1");
  EXPECT_TRUE(power.placements[0].output);
  EXPECT_THAT(power.placements[0].producers, ElementsAre("divide.1", "broadcast.0"));
  EXPECT_THAT(to_text(power), HasSubstr("power.1 -> broadcast.2: no [xla.expensive-and-reused]"));
}

TEST(Explain, AnOpInSeveralKernelsHasSeveralPlacements) {
  const Explanation broadcast = of("fig7", "xla", "broadcast.2");
  ASSERT_EQ(broadcast.placements.size(), 2u);
  EXPECT_EQ(broadcast.placements[0].scheme, Scheme::kRecomputed);
  EXPECT_THAT(to_text(broadcast), HasSubstr("computed in 2 kernels"));
}

TEST(Explain, SubDominantsNameTheirDominant) {
  const Explanation power = of("fig7", "astitch", "power.1");
  ASSERT_EQ(power.placements.size(), 1u);
  EXPECT_EQ(power.placements[0].role, "sub-dominant");
  EXPECT_EQ(power.placements[0].dominant, "reduce.1");
}

TEST(Explain, OpsOutsideKernelsSayWhatTheyAre) {
  EXPECT_EQ(of("fig7", "xla", "parameter.1").step, "parameter");
  EXPECT_THAT(of("fig7", "xla", "zero").step, HasSubstr("immediate"));
  const Graph graph = dataset("bert_layer");
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  for (const Node& node : graph.entry_computation().nodes) {
    if (node.op != Op::kDot) continue;
    EXPECT_EQ(explain(graph, plan, node.name).step, "library call lib:" + node.name);
  }
}

const Neighbour* neighbour(const Explanation& e, const std::string& where) {
  for (const Neighbour& n : e.neighbours)
    if (n.where == where) return &n;
  return nullptr;
}

TEST(Explain, SaysWhatAnOpWasNearlyFusedWithAndWhatWouldChangeThat) {
  const Explanation power = of("fig7", "xla", "power.1");
  const Neighbour* producer = neighbour(power, "kernel k0 reduce_1");
  ASSERT_NE(producer, nullptr);
  EXPECT_EQ(producer->relation, "producer");
  ASSERT_TRUE(producer->refusal);
  EXPECT_EQ(producer->refusal->verdict.rule, "xla.reduce-is-never-a-producer");
  EXPECT_THAT(producer->needs, HasSubstr("fewer than 32 elements"));
  const Neighbour* consumer = neighbour(power, "kernel k2 reduce_2");
  ASSERT_NE(consumer, nullptr);
  EXPECT_EQ(consumer->relation, "consumer");
  EXPECT_EQ(consumer->producer, "power.1");
  EXPECT_THAT(to_text(power), HasSubstr("consumer kernel k2 reduce_2: power.1 -> "));
}

TEST(Explain, ADecisionThatIsNotRecordedIsFoundByPlanningAgain) {
  const Graph graph = dataset("fig7");
  const Explanation e = explain(graph, make_plan(graph, device("v100"), "xla"), "power.1");
  EXPECT_FALSE(e.decisions.empty());
}

/// Of the kernel that makes the op.
OpPlacement placed(const char* model, const char* planner, const char* on, const char* op) {
  const Graph graph = testing::dataset(model);
  return explain(graph, make_plan(graph, device(on), planner), op).placements.at(0);
}

TEST(Explain, ListsTheFormsOfAKernelAndTheOneThatIsTaken) {
  const OpPlacement at = placed("layer_norm_grad", "astitch", "h200", "reduce.112");
  std::set<std::string> names;
  int taken = 0, refused = 0;
  for (const Decision& form : at.forms) {
    EXPECT_TRUE(names.insert(form.object).second) << form.object << " twice";
    taken += form.verdict.ok;
    refused += form.verdict.rule == "form.needs-wave";
    if (!form.verdict.ok) continue;
    // With the gap before it.
    const double us = at.time.total_us + device("h200").launch_gap_us;
    EXPECT_THAT(form.verdict.why, ::testing::StartsWith(fmt::format("{:.2f} us, ", us)));
  }
  EXPECT_EQ(taken, 1);
  EXPECT_GE(refused, 1);
  EXPECT_GE(at.forms.size(), 3u);
}

TEST(Explain, AnotherCoverOfAKernelLeavesNoFormsOfTheOneItReplaces) {
  const Graph graph = testing::dataset("fig7");
  Device slow = device("v100");
  slow.grid_barrier_us = 1000;
  PlanOptions options;
  options.record_decisions = true;
  const FusionPlan plan = make_plan(graph, slow, "auto", options);
  ASSERT_GT(plan.kernels.size(), 1u);
  for (const Decision& d : plan.decisions)
    if (d.step == kFormStep && d.verdict.ok) {
      EXPECT_THAT(d.verdict.rule, ::testing::StartsWith("auto."));
    }
}

TEST(Explain, CallsAreNeighboursToo) {
  const Graph graph = testing::graph_of(
      "p = f32[64,64] parameter(0)\n"
      "d = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "ROOT t = f32[64,64] tanh(d)");
  const Explanation e = explain(graph, make_plan(graph, device("v100"), "tvm"), "t");
  ASSERT_EQ(e.neighbours.size(), 2u);
  EXPECT_EQ(e.neighbours[1].where, "result");
  EXPECT_EQ(e.neighbours[0].where, "library call lib:d");
  ASSERT_TRUE(e.neighbours[0].refusal);
  EXPECT_EQ(e.neighbours[0].refusal->verdict.rule, "tvm.library-epilogue");
}

TEST(Explain, ALibraryCallHasItsNeighboursAndTheReasonThatItIsOne) {
  const Graph graph = dataset("bert_layer");
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", {{}, {}, true});
  const Explanation dot = explain(graph, plan, "dot.43");
  ASSERT_FALSE(dot.neighbours.empty());
  for (const Neighbour& n : dot.neighbours) {
    ASSERT_TRUE(n.refusal);
    EXPECT_EQ(n.refusal->verdict.rule, "boundary.library-call") << n.where;
  }
  for (const Neighbour& n : explain(graph, plan, "divide.67").neighbours) {
    if (n.where.starts_with("library call")) {
      EXPECT_EQ(n.refusal->verdict.rule, "boundary.library-call") << n.where;
    }
  }
}

TEST(Explain, DecisionsAreToldOnceAndClassificationsAreNoRefusals) {
  const Graph graph = dataset("bert_layer");
  for (const char* planner : {"xla", "tvm", "astitch", "auto"}) {
    const FusionPlan plan = make_plan(graph, device("v100"), planner, {{}, {}, true});
    for (const Node& node : graph.entry_computation().nodes) {
      const Explanation e = explain(graph, plan, node.name);
      std::set<std::string> seen;
      for (const Decision& d : e.decisions)
        EXPECT_TRUE(seen.insert(d.step + d.subject + "|" + d.object + d.verdict.rule + d.verdict.why).second)
            << planner << " " << d.step << " " << d.subject << " " << d.object << " " << d.verdict.rule;
      for (const Refusal& r : e.refusals) EXPECT_NE(r.decision.verdict.rule, "astitch.local");
    }
  }
}

/// Whether a later pass decided about what `refusal` is about, or is to by what it says itself.
bool was_overruled(const std::vector<Decision>& all, const Decision& refusal) {
  const std::string& rule = refusal.verdict.rule;
  if (rule == "xla.several-users" || rule == "xla.producer-is-a-fusion") return true;
  const auto equal = [&](const Decision& d) {
    return d.step == refusal.step && d.subject == refusal.subject && d.object == refusal.object &&
           d.verdict.rule == rule && d.verdict.why == refusal.verdict.why;
  };
  auto last = all.end();
  for (auto d = all.begin(); d != all.end(); ++d)
    if (equal(*d)) last = d;
  if (last == all.end()) return false;  // of a boundary: what it is says it
  return std::any_of(std::next(last), all.end(), [&](const Decision& later) {
    return decides_kernels(later.step) && later.subject == refusal.subject && later.object == refusal.object;
  });
}

TEST(Explain, QuotesNoRefusalOfAPassThatDidNotDecide) {
  int quoted = 0;
  for (const char* model : {"fig7", "softmax_block", "layer_norm_grad", "adam_tiny", "bert_tiny", "crnn_tiny",
                            "attention", "unet_block"}) {
    const Graph graph = dataset(model);
    for (const char* planner : {"xla", "tvm", "astitch", "auto", "fusionstitching-2018", "korch"}) {
      const FusionPlan plan = make_plan(graph, device("v100"), planner, {{}, {}, true});
      const PlanView view(graph, plan);
      for (const Node& node : graph.entry_computation().nodes)
        for (const Refusal& r : explain(graph, plan, node.name).refusals) {
          const Decision& d = r.decision;
          if (!decides_kernels(d.step)) continue;
          ++quoted;
          const std::string said = fmt::format("{} {}: {}: {} {} [{}] {}", model, planner, node.name,
                                               d.subject, d.object, d.verdict.rule, d.verdict.why);
          EXPECT_FALSE(was_overruled(plan.decisions, d)) << said;
          const NodeId subject = testing::op(graph, d.subject), object = testing::op(graph, d.object);
          if (subject == kNoNode || object == kNoNode || subject == object) continue;
          EXPECT_FALSE(!view.kernels_of(object).empty() && view.shares_kernel(subject, object)) << said;
        }
    }
  }
  EXPECT_GT(quoted, 0);
}

TEST(Explain, EveryNameOfTheFileIsAnswered) {
  const Graph read = parse_hlo(
      "HloModule m\nadd { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT sum = f32[] add(a, b) }\n"
      "relu { r = f32[4,64] parameter(0)  z = f32[] constant(0)\n"
      "  zs = f32[4,64] broadcast(z), dimensions={}  ROOT largest = f32[4,64] maximum(r, zs) }\n"
      "ENTRY main { x = f32[4,64] parameter(0)  t = f32[4,64] tanh(x)  same = f32[4,64] tanh(x)\n"
      "  dead = f32[4,64] exponential(x)  c = f32[4,64] call(same), to_apply=relu\n"
      "  zero = f32[] constant(0)  s = f32[4] reduce(c, zero), dimensions={1}, to_apply=add\n"
      "  ROOT out = (f32[4], f32[4,64]) tuple(s, t) }",
      "test.hlo");
  OpTrace trace;
  const Graph graph = canonicalize(read, &trace);
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", {{}, {}, true});
  for (const Computation& computation : read.computations)
    for (const Node& node : computation.nodes) {
      const Explanation e = has_op(graph, plan, node.name) ? explain(graph, plan, node.name)
                                                           : explain_as_read(graph, plan, trace, node.name);
      EXPECT_NE(to_text(e), "") << node.name;
    }
  EXPECT_THAT(to_text(explain_as_read(graph, plan, trace, "same")),
              ::testing::StartsWith("same was merged with t, which computes the same\nt = f32[4,64]"));
  EXPECT_THAT(to_text(explain(graph, plan, "sum")), HasSubstr("which s applies"));
}

TEST(WhatIf, MergesThatThePlannerAdmitsAndRefusesAreTriedOut) {
  // The dot stands between a and b: one kernel would run in a circle. c and a may share one.
  const Graph graph = testing::graph_of(
      "p = f32[64,64] parameter(0)\n q = f32[64,64] parameter(1)\n a = f32[64,64] tanh(p)\n"
      "d = f32[64,64] dot(a, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "ROOT b = f32[64,64] add(d, a)");
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", {{}, {}, true});
  const std::vector<WhatIf> trials = try_overrides(graph, plan, explain(graph, plan, "a"));
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].edit.ops, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(trials[0].admitted);
  EXPECT_FALSE(trials[0].why.empty());
}

TEST(WhatIf, AGlobalValueIsTriedRegional) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", {{}, {}, true});
  const std::vector<WhatIf> trials = try_overrides(graph, plan, explain(graph, plan, "power.1"));
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].edit.kind, EditKind::kScheme);
  EXPECT_THAT(to_text(plan, trials), HasSubstr("\"to\":\"regional\""));
}

TEST(WhatIf, PlannersWithoutThatOverrideHaveNone) {
  const Graph graph = dataset("fig7");
  const FusionPlan plan = make_plan(graph, device("v100"), "xla", {{}, {}, true});
  EXPECT_TRUE(try_overrides(graph, plan, explain(graph, plan, "power.1")).empty());
}

TEST(Explain, UnknownOpsAreAnsweredWithCloseNames) {
  try {
    of("fig7", "xla", "powr.1");
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_THAT(e.hint(), HasSubstr("power.1"));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
