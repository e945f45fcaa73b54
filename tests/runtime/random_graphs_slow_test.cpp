// The whole road on random graphs: kernels of every planner and knob, compiled, run in the simulator with all
// its sanitizers, and compared with the evaluator. A failure is printed as the smallest part that still
// fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <set>

#include "analysis/plan/assemble.h"
#include "analysis/schedule/one_pass.h"
#include "analysis/schedule/tiles.h"
#include "analysis/verify/verify.h"
#include "codegen/compile/compiler.h"
#include "codegen/compile/process.h"
#include "codegen/executable.h"
#include "core/base/sorted.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "runtime/run.h"
#include "tests/support/clustered.h"
#include "tests/support/forms.h"
#include "tests/support/fuzz.h"
#include "tests/support/planner_settings.h"
#include "tests/support/shrink_hlo.h"
#include "tests/support/staged_rows.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::PlannerSetting;
using testing::Reference;

const testing::FormFloors kFloors = {
    {"across", 4},         {"bulk", 6},     {"cluster", 6},  {"column split", 1},
    {"cp_async", 2},       {"one pass", 4}, {"partials", 2}, {"row_serial", 6},
    {"several tasks", 20}, {"staged", 5},   {"tiles", 3},
};
const testing::FormFloors kPlannedFloors = {
    {"across", 4},         {"bulk", 8},          {"cluster", 1},
    {"column", 20},        {"column split", 1},  {"cp_async", 2},
    {"elementwise", 150},  {"global", 30},       {"global, had in its phase", 12},
    {"grid barriers", 30}, {"lanes", 30},        {"one pass", 2},
    {"partials", 1},       {"regional", 40},     {"row_pack", 100},
    {"row_serial", 1},     {"several rows", 40}, {"several tasks", 12},
    {"staged", 1},         {"tile", 1},          {"tiles", 3},
    {"unrolled", 40},      {"vectors", 100},
};

constexpr std::uint32_t kFirst = 1930, kSeeds = 131;
constexpr std::uint32_t kMostRareSeeds = 2000;  ///< planned, for graphs with rare forms
const testing::FormFloors kRareForms = {{"bulk", 8}, {"cp_async", 2}, {"one pass", 2}};
constexpr std::size_t kSettings = 2;  ///< of each graph, a mixed one, and the default

/// What all runs had: a test that never crosses a barrier says nothing of barriers.
struct Coverage {
  int runs = 0;
  testing::FormCounts forms, planned;               ///< of all kernels; of those run as they were planned
  std::int64_t elements = 0, allowed = 0, nan = 0;  ///< of outputs
  sim::SanitizerCounts sanitized;
  std::set<std::string> settings;
};

/// Rows of random graphs stay on chip: what can be gathered in one pass is, all the same.
void gather_all(const Graph& graph, FusionPlan& plan) {
  for (KernelPlan& kernel : plan.kernels)
    for (Group& group : kernel.groups)
      for (const NodeId op : materialised(group))
        if (can_gather(graph, kernel, group, op)) insert_sorted(group.one_pass, op);
}

/// Nor does a planner share rows as short as theirs, or take them one by one through tiles: where rows can be
/// staged every third kernel's are, and where they can be shared by clusters the others', several to each.
void share_all(const Graph& graph, const Device& device, std::uint32_t seed, FusionPlan& plan) {
  const bool clusters = device.max_cluster_blocks > 0;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const std::int64_t takers = 1 + (seed / 3 + k) % 4;
    const int cluster = clusters ? 1 << (seed + k) / 3 % 4 : 1;
    const bool copies = has_async_copies(device);
    const int stages = copies ? static_cast<int>((seed / 3 + k) % 4) : 0;
    const bool bulk = 10 * device.cc_major + device.cc_minor >= kBulkArchitecture && (seed + k) % 2 == 0;
    const bool staged = (seed + k) % 3 == 0 && testing::stage_single_rows(graph, device, plan, k, takers,
                                                                          cluster, 1, 1, stages, bulk);
    if (clusters && !staged) testing::share_rows(graph, device, plan, k, 2 << (seed + k) % 3, takers);
  }
}

class RandomGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "neither NVRTC nor clang is installed";
    compile_options_.cache_dir = kernels_.path().string();
    compile_options_.ptxas = false;
    if (const char* compiler = std::getenv("STITCHWORK_FUZZ_COMPILER")) compile_options_.compiler = compiler;
    run_options_.sanitize = {.race = true, .init = true};
  }

  /// Plans, compiles and runs; what went wrong, or "".
  std::string outcome(const Graph& graph, Reference& reference, const Device& device,
                      const PlannerSetting& setting, std::uint32_t seed) {
    try {
      FusionPlan plan =
          make_plan(graph, device, setting.planner, testing::with_weights_of(graph, setting.options));
      if (seed % 2 == 0) {  // of small values at random; those over domains are run as they were planned
        const auto one_pass = setting.options.knobs.find("one_pass");
        if (one_pass == setting.options.knobs.end() || one_pass->second == "on") gather_all(graph, plan);
        share_all(graph, device, seed, plan);
        if (const std::vector<Verdict> problems = verify(graph, device, plan); !problems.empty())
          return problems[0].why;
      } else {
        coverage_.planned.add(device.id, plan);
      }
      coverage_.forms.add(device.id, plan);
      const RunResult run = run_simulated(graph, device, compile(graph, device, plan, compile_options_),
                                          reference.inputs(), run_options_);
      ++coverage_.runs;
      coverage_.sanitized += run.sanitized;
      if (!run.findings.empty())
        return fmt::format("{} in {}: {}", name(run.findings[0].kind), run.findings[0].kernel,
                           run.findings[0].message);
      return reference.problem(run.outputs);
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  /// Of seeds from `first` on, what astitch plans in forms that are rare, until there are enough of each.
  void run_rare_forms(std::uint32_t first) {
    const auto wanted = [&](const auto& floor) { return coverage_.planned.of(floor.first) < floor.second; };
    for (std::uint32_t seed = first; seed < first + kMostRareSeeds; seed += 2) {
      if (std::ranges::none_of(kRareForms, wanted)) return;
      const Graph graph = canonicalize(parse_hlo(testing::executed_hlo(seed), "random.hlo"));
      std::mt19937 random(seed);
      const Device where = testing::some_share(random);
      testing::FormCounts forms;
      forms.add(where.id, make_plan(graph, where, "astitch"));
      if (std::ranges::none_of(kRareForms, [&](const auto& f) { return wanted(f) && forms.of(f.first) > 0; }))
        continue;
      Reference reference(graph, testing::fuzz_inputs(graph, seed));
      EXPECT_EQ(outcome(graph, reference, where, {"astitch", {}}, seed), "") << "seed " << seed;
    }
  }

  /// The smallest part of the graph that fails under the same setting.
  std::string shrunk(const std::string& text, std::uint32_t seed, const Device& device,
                     const PlannerSetting& setting) {
    return testing::shrink_hlo(text, [&](const std::string& part) {
      const Graph graph = canonicalize(parse_hlo(part, "part.hlo"));
      Reference reference(graph, testing::fuzz_inputs(graph, seed));
      return !outcome(graph, reference, device, setting, seed).empty();
    });
  }

  const TemporaryFolder kernels_;  // planners and devices share many of them
  CompileOptions compile_options_;
  RunOptions run_options_;
  Coverage coverage_;
};

TEST_F(RandomGraphs, KernelsOfEveryPlannerAndKnobComputeWhatTheGraphMeansWithoutAFinding) {
  const testing::FuzzRange range = testing::fuzz_range(kFirst, kSeeds);
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    const std::string text = testing::executed_hlo(seed);
    std::optional<Graph> graph;
    std::optional<Reference> reference;
    ASSERT_NO_THROW({
      graph = canonicalize(parse_hlo(text, "random.hlo"));
      reference.emplace(*graph, testing::fuzz_inputs(*graph, seed));
    }) << "seed "
       << seed << "\n"
       << text;
    std::mt19937 random(seed);
    std::vector<PlannerSetting> settings = testing::settings_of(seed, kSettings);
    settings.push_back({"astitch", {}});  // whose estimates choose between the forms
    for (const PlannerSetting& setting : settings) {
      const Device where = testing::some_share(random);
      const std::string problem = outcome(*graph, *reference, where, setting, seed);
      coverage_.settings.insert(setting.text());
      EXPECT_EQ(problem, "") << "seed " << seed << ", " << setting.text() << " for " << where.id << " with "
                             << where.sms << " SMs; a part that fails:\n"
                             << shrunk(text, seed, where, setting);
    }
    coverage_.elements += reference->elements();
    coverage_.allowed += reference->allowed();
    coverage_.nan += reference->nan();
  }
  if (!range.chosen) run_rare_forms(range.end | 1);
  const Coverage& c = coverage_;
  std::cout << fmt::format(
      "{} graphs, {} runs, {} planner settings; of {} elements {} needed the allowance of their rounding, {} "
      "were NaN; {} accesses checked for races, {} reads for initialisation\n",
      range.end - range.first, c.runs, c.settings.size(), c.elements, c.allowed, c.nan,
      c.sanitized.race_accesses, c.sanitized.init_accesses);
  std::cout << "kernels by form and device:\n"
            << c.forms.text() << "of these, as planned:\n"
            << c.planned.text();
  EXPECT_LT(c.nan, c.elements / 20) << "NaN proves little";
  EXPECT_LT(c.allowed, c.elements / 20);
  if (range.chosen) return;
  testing::expect_floors(c.forms, kFloors);
  testing::expect_floors(c.planned, kPlannedFloors);
  for (const PlannerSetting& setting : testing::planner_settings())
    EXPECT_TRUE(c.settings.contains(setting.text())) << setting.text() << " was never tried";
}

/// What NVRTC 13.0 unrolled into loads from a register that it sets later: a sum of columns whose last
/// vectors are guarded and taken one by one (seed 66189).
TEST_F(RandomGraphs, GuardedVectorsOfASumOfColumnsAreLoadedFromWhereTheyLie) {
  const Graph graph = canonicalize(parse_hlo(R"(HloModule columns
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main {
  v1 = f32[185] parameter(0)
  zero = f32[] constant(0)
  five_fourths = f32[] constant(1.25)
  v28 = f32[370,185] broadcast(five_fourths), dimensions={}
  v30 = f32[370] parameter(1)
  v31 = f32[370,185] broadcast(v30), dimensions={0}
  v32 = f32[370,185] subtract(v28, v31)
  v33 = f32[370,185] exponential(v32)
  v34 = f32[370] parameter(2)
  v35 = f32[370,185] broadcast(v34), dimensions={0}
  v36 = f32[370,185] divide(v33, v35)
  v44 = f32[370,185] parameter(3)
  v45 = f32[370,185] multiply(v36, v44)
  v46 = f32[370,185] broadcast(v1), dimensions={1}
  v47 = f32[370,185] multiply(v45, v46)
  v51 = f32[370] parameter(4)
  v52 = f32[370,185] broadcast(v51), dimensions={0}
  v53 = f32[370,185] multiply(v45, v52)
  v54 = f32[370,185] subtract(v47, v53)
  small = f32[] constant(0.0078125)
  v55 = f32[370,185] broadcast(small), dimensions={}
  v56 = f32[370,185] multiply(v54, v55)
  v57 = f32[370,185] multiply(v45, v45)
  v58 = f32[185] reduce(v57, zero), dimensions={0}, to_apply=add
  v59 = f32[185] parameter(5)
  v60 = f32[185] multiply(v58, v59)
  ROOT result = (f32[370], f32[370,185], f32[185]) tuple(v51, v56, v60)
}
)",
                                             "columns.hlo"));
  Reference reference(graph, testing::fuzz_inputs(graph, 1));
  PlannerSetting setting{"xla+atm", {}};
  for (const char* knob : {"across_rows", "clusters", "one_pass", "register_relaxation", "remote_stitching",
                           "residence", "shared_reuse", "tiles"})
    setting.options.knobs[knob] = "off";
  setting.options.knobs["mapping"] = "tuned";
  setting.options.knobs["exhaustive_stitching"] = "on";
  EXPECT_EQ(outcome(graph, reference, testing::share_of("b200", 8), setting, 1), "");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
