// The reason at each boundary of a plan is one that can decide there, and names its ops.
#include "analysis/explain/boundaries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "analysis/explain/remedy.h"
#include "analysis/plan/assemble.h"
#include "analysis/plan/control_flow.h"
#include "analysis/planners/planner.h"
#include "tests/support/fuzz.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

enum Meets { kKernels, kCall, kCopy, kControl, kResult };

/// Which rules may stand where, by their beginnings; those not here may stand nowhere.
struct Place {
  std::string_view rule;
  std::set<Meets> where;
};
const Place kPlaces[] = {
    {"xla.sibling", {}},
    {"xla.", {kKernels}},
    {"auto.epilogue", {kCall}},
    {"auto.product", {kCall}},
    {"tvm.library-epilogue", {kCall}},
    {"tvm.", {kKernels}},
    {"astitch.cycle", {kKernels}},
    {"astitch.max-ops", {kKernels}},
    {"astitch.kernel-limits", {kKernels}},
    {"astitch.isolated", {kKernels}},
    {"auto.cut", {kKernels}},
    {"auto.recompute", {kKernels}},
    {"auto.xla", {kKernels}},
    {"fs18.footprint", {}},
    {"fs18.too-large-to-pack", {}},
    {"fs18.strided-column", {}},
    {"fs18.", {kKernels}},
    {"fs19.solver-limit", {}},
    {"fs19.large-gemm", {}},
    {"fs19.", {kKernels}},
    {"korch.", {kKernels}},
    {"unfused.one-op-a-kernel", {kKernels}},
    {"eager.", {kKernels}},
    {"boundary.cycle", {kKernels}},
    {"boundary.no-elements", {kKernels}},
    {"imported.", {kKernels}},
    {"xla-today.", {kKernels}},
    {"override.forbid_merge", {kKernels}},
    {"boundary.library-call", {kCall}},
    {"boundary.opaque-call", {kCall}},
    {"boundary.copy", {kCopy}},
    {"boundary.loop", {kControl}},
    {"boundary.branch", {kControl}},
    {"boundary.result", {kResult}},
    {"boundary.optimization-barrier", {kKernels}},
};

std::set<Meets> meets(const FusionPlan& plan, const StepBoundary& at) {
  if (at.to < 0) return {kResult};
  std::set<Meets> result;
  for (const int index : {at.from, at.to}) {
    const StepKind kind = plan.steps[static_cast<std::size_t>(index)].kind;
    if (kind == StepKind::kLibrary) result.insert(kCall);
    if (kind == StepKind::kCopy) result.insert(kCopy);
    if (kind == StepKind::kControl) result.insert(kControl);
  }
  if (result.empty()) result.insert(kKernels);
  return result;
}

/// The value of the boundary and what reads it there, through names; the kernels' other ops.
bool names_its_ops(const Graph& graph, const FusionPlan& plan, const StepBoundary& at, const Decision& d) {
  const Computation& computation = graph.entry_computation();
  const NodeId subject = computation.find(d.subject);
  const auto in = [&](int index, NodeId op) {
    if (index < 0) return false;
    const PlanStep& step = plan.steps[static_cast<std::size_t>(index)];
    const auto& ops = step.kernel >= 0 ? plan.kernels[static_cast<std::size_t>(step.kernel)].ops : step.nodes;
    return std::ranges::find(ops, op) != ops.end();
  };
  return (subject != kNoNode && buffer_of(computation, subject) == at.value) || in(at.from, subject) ||
         in(at.to, subject);
}

/// Of the entry and of what its loops and branches run.
void expect_reasons(const Graph& model, const FusionPlan& plan, const std::string& label) {
  const Graph& graph = planned_graph(model, plan);
  const PlanView view(graph, plan);
  const Device& target = device(plan.device);
  std::map<std::string, std::string> wrong;  // one boundary a rule
  for (const StepBoundary& at : boundaries(graph, plan)) {
    const Decision d = why_apart(view, plan, at);
    const std::string where = view.name(at.value) + " -> " +
                              (at.reader == kNoNode ? std::string("result") : view.name(at.reader)) + ": " +
                              d.subject + " " + d.object + " " + d.verdict.why;
    const auto* place =
        std::ranges::find_if(kPlaces, [&](const Place& p) { return d.verdict.rule.starts_with(p.rule); });
    if (place == std::end(kPlaces)) {
      wrong.emplace(d.verdict.rule + " may stand nowhere", where);
      continue;
    }
    const std::set<Meets> here = meets(plan, at);
    if (std::ranges::none_of(here, [&](Meets m) { return place->where.contains(m); }))
      wrong.emplace(d.verdict.rule + " may not stand here", where);
    if (d.verdict.ok || d.verdict.why.empty()) wrong.emplace(d.verdict.rule + " says nothing", where);
    if (!names_its_ops(graph, plan, at, d)) wrong.emplace(d.verdict.rule + " is about other ops", where);
    if (remedy(target, d).empty()) wrong.emplace(d.verdict.rule + " has no remedy", where);
  }
  for (const auto& [what, where] : wrong) ADD_FAILURE() << label << ": " << what << ": " << where;
  for (const ComputationPlan& part : plan.computations)
    expect_reasons(entered(graph, part.computation), part.plan, label);
}

TEST(Boundaries, OfDatasetsHaveTheReasonThatDecided) {
  for (const char* model : {"bert_layer", "fig7", "layer_norm_grad", "mlp_training", "adam_tiny", "attention",
                            "crnn_tiny", "moe_layer", "unet_block", "row_64x30000"}) {
    const Graph graph = testing::dataset(model);
    for (const Planner& row : planners_for(graph))
      for (const char* on : {"v100", "h200"})
        expect_reasons(graph, make_plan(graph, device(on), row.name, {{}, {}, true}),
                       std::string(model) + " " + std::string(row.name) + " " + on);
  }
}

class RandomBoundaries : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomBoundaries, HaveTheReasonThatDecided) {
  const std::string text = testing::random_hlo(GetParam());
  const Graph graph = canonicalize(parse_hlo(text, "random.hlo"));
  SCOPED_TRACE(text);
  for (const Planner& row : planners_for(graph))
    expect_reasons(graph, make_plan(graph, device("v100"), row.name, {{}, {}, true}),
                   std::to_string(GetParam()) + " " + std::string(row.name));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomBoundaries, ::testing::Range<std::uint32_t>(0, 100));

TEST(Boundaries, ALibraryCallEndsTheKernelsBesideIt) {
  const Graph graph = testing::graph_of(
      "p = f32[64,64] parameter(0)\n a = f32[64,64] tanh(p)\n"
      "d = f32[64,64] dot(a, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "ROOT t = f32[64,64] add(d, p)");
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", {{}, {}, true});
  const PlanView view(graph, plan);
  const std::vector<StepBoundary> all = boundaries(graph, plan);
  ASSERT_EQ(all.size(), 3u);  // a -> d, d -> t, t -> result
  EXPECT_EQ(why_apart(view, plan, all[0]).verdict.rule, "boundary.library-call");
  EXPECT_EQ(why_apart(view, plan, all[1]).verdict.rule, "boundary.library-call");
  EXPECT_EQ(why_apart(view, plan, all[2]).verdict.rule, "boundary.result");
}

TEST(Boundaries, OfXlaQuoteThePassThatDecided) {
  // Two readers: the first pass only says that the one that duplicates decides.
  const Graph graph = testing::graph_of(
      "p = f32[64,64] parameter(0)\n z = f32[] constant(0)\n e = f32[64,64] exponential(p)\n"
      "a = f32[64] reduce(e, z), dimensions={1}, to_apply=sum\n"
      "b = f32[64] reduce(e, z), dimensions={0}, to_apply=sum\n"
      "ROOT t = (f32[64], f32[64]) tuple(a, b)");
  const FusionPlan plan = make_plan(graph, device("v100"), "xla", {{}, {}, true});
  const PlanView view(graph, plan);
  for (const StepBoundary& at : boundaries(graph, plan))
    EXPECT_NE(why_apart(view, plan, at).verdict.rule, "xla.several-users");
}

TEST(Boundaries, NameTheReaderThatComputesNotAnIndexMapBeforeIt) {  // overrides are about what computes
  const Graph graph = testing::graph_of(
      "p = f32[64] parameter(0)\n q = f32[64,32] parameter(1)\n e = f32[64] exponential(p)\n"
      "wide = f32[64,32] broadcast(e), dimensions={0}\n flat = f32[2048] reshape(wide)\n"
      "r = f32[2048] reshape(q)\n s = f32[2048] add(flat, r)\n u = f32[64] negate(e)\n"
      "ROOT t = (f32[2048], f32[64]) tuple(s, u)");
  PlanOptions options;
  options.edits = {{EditKind::kSplit, {"e"}, {}, 0}};
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch", options);
  std::set<std::string> readers;
  for (const StepBoundary& at : boundaries(graph, plan))
    if (at.value == testing::op(graph, "e") && at.reader != kNoNode)
      readers.insert(graph.entry_computation().node(at.reader).name);
  EXPECT_TRUE(readers.contains("s"));
  for (const std::string& reader : readers) EXPECT_TRUE(reader == "s" || reader == "u") << reader;
}

TEST(Boundaries, OfFusionStitchingSayWhatLiesBetween) {
  const Graph graph = testing::dataset("bert_layer");
  const FusionPlan plan = make_plan(graph, device("v100"), "fusionstitching", {{}, {}, true});
  const PlanView view(graph, plan);
  std::set<std::string> rules;
  for (const StepBoundary& at : boundaries(graph, plan))
    if (view.name(at.value) == "add.142" && at.reader != kNoNode && view.name(at.reader) == "add.160") {
      const Decision d = why_apart(view, plan, at);
      EXPECT_EQ(d.verdict.rule, "boundary.cycle");
      EXPECT_NE(d.verdict.why.find("dot.143 lies between them"), std::string::npos) << d.verdict.why;
      rules.insert(d.verdict.rule);
    }
  EXPECT_EQ(rules.size(), 1u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
