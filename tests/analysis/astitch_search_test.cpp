#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "analysis/forms/auto_forms.h"
#include "analysis/forms/best_kernel.h"
#include "analysis/forms/search.h"
#include "analysis/json/plan_json.h"
#include "analysis/plan/assemble.h"
#include "tests/support/astitch_passes.h"
#include "tests/support/fuzz.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

std::string text(const std::vector<Decision>& decisions) {
  std::string result;
  for (const Decision& d : decisions)
    result += fmt::format("{} {} {} {} {} {}\n", d.step, d.subject, d.object, d.verdict.ok, d.verdict.rule,
                          d.verdict.why);
  return result;
}

std::string text(const std::vector<KernelPlan>& kernels) {
  std::string result;
  for (const KernelPlan& kernel : kernels) {
    for (const Group& group : kernel.groups)
      result += fmt::format("{} lane {} first {} of {}\n", to_text(group.mapping, group.deal), group.lane,
                            group.deal.first_block, group.dominant);
    for (const auto& [id, scheme] : kernel.schemes)
      result += fmt::format("{} {} {}\n", id, name(scheme), kernel.levels.at(id));
    const KernelLaunch& l = kernel.launch;
    result += fmt::format("{} {} {} {} {} {}\n", l.grid, l.block, l.shared_bytes, l.scratch_bytes,
                          l.register_bound, l.grid_barriers);
  }
  return result;
}

Options recorded(bool tuned) {
  Options options;
  options.tuned = tuned;
  options.record_decisions = true;
  return options;
}

Scope scope_of(const Nodes& nodes, const Options& options) {
  Recorder silent(false);
  return find_scope(nodes, options.max_ops, silent);
}

void expect_alone_as_searched(const Nodes& nodes, const Device& target, const Options& options,
                              const Searched& searched) {
  EXPECT_EQ(searched.best().misfit, Misfit::kNone);
  for (const Attempt& attempt : searched.attempts) {
    SCOPED_TRACE(to_text(nodes, attempt.form));
    const Attempt alone = complete(nodes, searched.candidate, target, options, attempt.form);
    EXPECT_EQ(alone.misfit, attempt.misfit);
    EXPECT_EQ(text(alone.decisions), text(attempt.decisions));
    EXPECT_EQ(text(alone.kernels), text(attempt.kernels));
    for (const Searched& part : attempt.parts) expect_alone_as_searched(nodes, target, options, part);
  }
}

TEST(AStitchSearch, AnAttemptIsWhatItsFormGivesAlone) {
  for (const char* model :
       {"adam_step_tiny", "layer_norm_grad_tiny", "attention_tiny", "mlp_training_tiny"}) {
    const Graph graph = dataset(model);
    const Nodes nodes = node_facts(graph);
    for (const char* id : {"v100", "h200"})
      for (const bool tuned : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {} {}", model, id, tuned));
        const Options options = recorded(tuned);
        for (const StitchOp& op : scope_of(nodes, options).stitch_ops)
          expect_alone_as_searched(nodes, device(id), options, search(nodes, op, device(id), options));
      }
  }
}

/// Scalars that crowd the groups of a form whose blocks need not wait went on being Global where they must.
TEST(AStitchSearch, WhatWasTriedBeforeLeavesNoTrace) {
  for (const char* model : {"adam_step_tiny", "bert_train_tiny"}) {
    const Graph graph = dataset(model);
    const Nodes nodes = node_facts(graph);
    const Options options = recorded(true);
    bool waits = false;
    for (const StitchOp& op : scope_of(nodes, options).stitch_ops) {
      const BestKernel best = best_kernel(nodes, op, device("v100"), options);
      if (best.kernels.size() != 1 || best.kernels[0].launch.grid_barriers == 0) continue;
      Form form;
      form.mappings.waits = true;
      const Attempt alone = complete(nodes, op, device("v100"), options, form);
      if (alone.misfit != Misfit::kNone || alone.kernels.size() != 1) continue;
      waits = true;
      EXPECT_EQ(text(best.kernels), text(alone.kernels)) << model << " " << nodes.name(op.members.back());
    }
    EXPECT_TRUE(waits) << model;
  }
}

TEST(AStitchSearch, EachFormIsCompletedOnce) {
  const Graph graph = dataset("layer_norm_grad");
  const Nodes nodes = node_facts(graph);
  const Options options = recorded(true);
  const Scope scope = scope_of(nodes, options);
  const Searched searched = search(nodes, scope.stitch_ops.at(0), device("h200"), options);
  EXPECT_GT(searched.attempts.size(), 4u);
  for (std::size_t a = 0; a < searched.attempts.size(); ++a)
    for (std::size_t b = a + 1; b < searched.attempts.size(); ++b)
      EXPECT_NE(searched.attempts[a].form, searched.attempts[b].form)
          << to_text(nodes, searched.attempts[a].form);
}

/// Whatever the order in which forms come, a kernel of the same worth is taken.
TEST(AStitchSearch, DoesNotDependOnTheOrderOfForms) {
  int several = 0;
  for (const auto& [model, id] :
       {std::pair("layer_norm_grad", "h200"), std::pair("layer_norm_grad", "a100-sxm-80"),
        std::pair("layer_norm_grad", "v100"), std::pair("layer_norm_grad_tiny", "h200"),
        std::pair("softmax", "h200"), std::pair("mlp_training", "h200")}) {
    const Graph graph = dataset(model);
    const Nodes nodes = node_facts(graph);
    const Device& target = device(id);
    const Options options = recorded(true);
    for (const StitchOp& op : scope_of(nodes, options).stitch_ops) {
      const Searched searched = search(nodes, op, target, options);
      std::vector<int> order = searched.offered;
      ASSERT_THAT(order, ::testing::Contains(searched.chosen));
      several += order.size() > 1;
      const Worth taken = options.judge->worth(graph, target, searched.best().kernels);
      for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        std::shuffle(order.begin(), order.end(), std::mt19937(seed));
        std::vector<Worth> worths;
        std::vector<PlanJudge::Kernels> forms;
        for (const int at : order) {
          forms.emplace_back(searched.attempts.at(static_cast<std::size_t>(at)).kernels);
          worths.push_back(options.judge->worth(graph, target, forms.back()));
        }
        const Worth& again = worths[options.judge->best(graph, target, worths, forms)];
        EXPECT_EQ(again.us, taken.us) << model;
        EXPECT_EQ(again.dram_sectors, taken.dram_sectors) << model;
        EXPECT_EQ(again.simple, taken.simple) << model;
      }
    }
  }
  EXPECT_GE(several, 2);
}

/// The decisions shown name the launch that the plan has, once a kernel, and are no abandoned form's.
TEST(AStitchSearch, DecisionsAreOfTheFormTaken) {
  for (const char* model : {"softmax", "layer_norm_grad", "layer_norm", "attention_tiny", "bert_tiny"})
    for (const char* id : {"v100", "a100-sxm-80", "h200"}) {
      SCOPED_TRACE(fmt::format("{} {}", model, id));
      const Graph graph = dataset(model);
      const Nodes nodes = node_facts(graph);
      const Options options = recorded(true);
      for (const StitchOp& op : scope_of(nodes, options).stitch_ops) {
        const Searched searched = search(nodes, op, device(id), options);
        if (searched.best().kernels.size() != 1) continue;
        const std::string all = text(searched.decisions);
        EXPECT_TRUE(all.starts_with(text(searched.best().decisions)));
        std::map<std::string, int> dominants, lanes, memory;
        for (const Decision& d : searched.decisions) {
          if (d.step == "dominants") ++dominants[d.subject + d.verdict.rule];
          if (d.step == "lanes") ++lanes[d.subject + d.object + d.verdict.rule];
          if (d.step == "launch") ++memory[d.subject];
        }
        EXPECT_EQ(memory.size(), 1u);
        for (const auto& counts : {dominants, lanes, memory})
          for (const auto& [what, count] : counts) EXPECT_EQ(count, 1) << what;
      }
    }
}

TEST(AStitchSearch, PlansDoNotDependOnWhoListens) {
  for (const char* model : {"layer_norm_grad_tiny", "softmax", "attention_tiny", "mlp_training_tiny"})
    for (const char* planner : {"astitch", "auto"})
      for (const char* id : {"v100", "h200"}) {
        const Graph graph = dataset(model);
        const FusionPlan silent = make_plan(graph, device(id), planner);
        FusionPlan heard = make_plan(graph, device(id), planner, {.record_decisions = true});
        EXPECT_FALSE(heard.decisions.empty());
        heard.decisions.clear();
        EXPECT_EQ(plan_to_json(graph, heard), plan_to_json(graph, silent)) << model << planner << id;
      }
}

/// Rows of one lane fit a cluster, those of another a block, and only the latter are copied in bulk: the
/// tiles of a kernel are filled in one way. Shapes are drawn; make_plan throws where its plan is invalid.
TEST(AStitchSearch, TilesOfAKernelAreFilledInOneWay) {
  std::mt19937 random(1);
  const Device b200 = stitchwork::testing::share_of("b200", 16);
  for (int draw = 0; draw < 60; ++draw) {
    const unsigned rows = 300 + random() % 300, cols = 200 + random() % 100;
    const Graph graph = stitchwork::testing::graph_of(fmt::format(
        "a = f32[{0},{1}] parameter(0)\n zero = f32[] constant(0)\n"
        "loss = f32[] reduce(a, zero), dimensions={{0,1}}, to_apply=sum\n"
        "b = f32[{0},{1}] parameter(1)\n r = f32[{0}] reduce(b, zero), dimensions={{1}}, to_apply=sum\n"
        "s = f32[{0}] rsqrt(r)\n t = f32[{0},{1}] broadcast(s), dimensions={{0}}\n"
        "c = f32[{0},{1}] parameter(2)\n m = f32[{0},{1}] multiply(c, t)\n"
        "d = f32[{0},{1}] parameter(3)\n y = f32[{0},{1}] multiply(m, d)\n"
        "ROOT result = (f32[], f32[{0},{1}]) tuple(loss, y)",
        rows, cols));
    EXPECT_NO_THROW(make_plan(graph, b200, "astitch")) << rows << "x" << cols;
  }
}

/// Of what a group loads only a value a column moves in vectors: as many of its elements as move at a time.
TEST(AStitchSearch, VectorsAreThoseOfWhatMovesInThem) {
  const Graph graph = stitchwork::testing::graph_of(
      "w = bf16[512] parameter(0)\n c = f32[512] convert(w)\n"
      "b = f32[56,512] broadcast(c), dimensions={1}\n e = f32[56,512] exponential-minus-one(b)\n"
      "zero = f32[] constant(0)\n r = f32[56] reduce(e, zero), dimensions={1}, to_apply=max\n"
      "s = f32[56,512] broadcast(r), dimensions={0}\n d = f32[56,512] subtract(e, s)\n"
      "x = f32[56,512] exponential(d)\n ROOT y = bf16[56,512] convert(x)");
  const PlanOptions apart{.knobs = {{"dominant_merging", "off"}}};
  for (const char* planner : {"astitch", "auto"})
    for (const char* id : {"v100", "h200"}) EXPECT_NO_THROW(make_plan(graph, device(id), planner, apart));
}

/// Short rows of bytes beside wide accumulators: no number of threads a row that they may have keeps so many
/// in registers, and rows that have none of them are mapped all the same.
TEST(AStitchSearch, ShortRowsBesideManyAccumulatorsAreMapped) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    const std::int64_t rows = 200 + random() % 2000, cols = 300 + random() % 700;
    const Graph graph = canonicalize(parse_hlo(
        fmt::format(
            "HloModule m\n"
            "sum {{ a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) }}\n"
            "any {{ a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] or(a, b) }}\n"
            "ENTRY e {{\n x = f64[{0},{1}] parameter(0)\n p = pred[{0},{1}] parameter(1)\n"
            "no = pred[] constant(false)\n q = pred[{0}] reduce(p, no), dimensions={{1}}, to_apply=any\n"
            "z = f64[] constant(0)\n r = f64[{0}] reduce(x, z), dimensions={{1}}, to_apply=sum\n"
            "b = f64[{0},{1}] broadcast(r), dimensions={{0}}\n d = f64[{0},{1}] subtract(x, b)\n"
            "y = f64[{0},{1}] parameter(2)\n m = f64[{0},{1}] multiply(d, y)\n"
            "c = f64[{1}] reduce(m, z), dimensions={{0}}, to_apply=sum\n"
            "ROOT o = (pred[{0}], f64[{1}]) tuple(q, c)\n}}\n",
            rows, cols),
        "m.hlo"));
    for (const int sms : {2, 8})
      EXPECT_NO_THROW(make_plan(graph, stitchwork::testing::share_of("a100-sxm-80", sms), "astitch"))
          << rows << " x " << cols << ", " << sms << " SMs";
  }
}

/// Rows made of constants lie beside staged ones of 16-bit floats, by the same mapping.
TEST(AStitchSearch, RowsOfConstantsHaveNoWiderVectorsThanTheirElements) {
  const Graph graph = stitchwork::testing::graph_of(
      "x = bf16[4,6656] parameter(0)\n w = f32[4,6656] convert(x)\n zero = f32[] constant(0)\n"
      "m = f32[4] reduce(w, zero), dimensions={1}, to_apply=max\n one = f32[] constant(1)\n"
      "c = f32[4,6656] broadcast(one), dimensions={}\n"
      "n = f32[4] reduce(c, zero), dimensions={1}, to_apply=max\n"
      "b = f32[4,6656] broadcast(n), dimensions={0}\n d = f32[4,6656] subtract(c, b)\n"
      "e = f32[4,6656] exponential(d)\n p = f32[4] parameter(1)\n"
      "q = f32[4,6656] broadcast(p), dimensions={0}\n f = f32[4,6656] divide(e, q)\n"
      "g = f32[4,6656] multiply(e, f)\n s = f32[6656] reduce(g, zero), dimensions={0}, to_apply=sum\n"
      "ROOT r = (f32[4], f32[6656]) tuple(m, s)");
  for (const char* planner : {"astitch", "astitch-no-dominant-merging", "auto"})
    for (const char* id : {"v100", "a100", "h200"}) EXPECT_NO_THROW(make_plan(graph, device(id), planner));
}

/// One kernel that reduces rows, by `reducer` from `first`.
std::string signature_of(const std::string& reducer, const std::string& first) {
  const Graph graph = stitchwork::testing::graph_of(fmt::format(
      "p = f32[64,512] parameter(0)\n first = f32[] constant({})\n ROOT r = f32[64] reduce(p, first), "
      "dimensions={{1}}, to_apply={}",
      first, reducer));
  const Nodes nodes = node_facts(graph);
  const Options options;
  const Candidate candidate = scope_of(nodes, options).stitch_ops.at(0);
  const BestKernel best = best_kernel(nodes, candidate, device("v100"), options);
  const std::vector<KernelPlan> none;
  return automatic::signature({&nodes, &device("v100"), &options, &best.kernels.at(0), &none, candidate});
}

TEST(AutoSignature, TellsReducersApart) {
  EXPECT_NE(signature_of("sum", "0"), signature_of("max", "0"));
  EXPECT_NE(signature_of("sum", "0"), signature_of("sum", "1"));  // only sums from zero become atomics
  EXPECT_EQ(signature_of("sum", "1"), signature_of("sum", "2"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
