// The whole road on random graphs: kernels of every planner and knob, compiled, run in the simulator with all
// its sanitizers, and compared with the evaluator. A failure is printed as the smallest part that still
// fails.
#include <gtest/gtest.h>

#include <iostream>
#include <optional>
#include <set>

#include "analysis/assemble.h"
#include "analysis/one_pass.h"
#include "analysis/tiles.h"
#include "analysis/verify.h"
#include "codegen/compiler.h"
#include "codegen/executable.h"
#include "codegen/process.h"
#include "core/hlo_text.h"
#include "core/passes.h"
#include "core/sorted.h"
#include "runtime/run.h"
#include "tests/support/clustered.h"
#include "tests/support/fuzz.h"
#include "tests/support/planner_settings.h"
#include "tests/support/shrink_hlo.h"
#include "tests/support/staged_rows.h"

namespace stitchwork {
namespace {

using testing::PlannerSetting;
using testing::Reference;

constexpr std::uint32_t kSeeds = 120;
constexpr std::size_t kSettings = 4;  ///< of each graph, and a mixed one

/// What the plans of all graphs had: a test that never crosses a barrier says nothing of barriers.
struct Coverage {
  int runs = 0, kernels = 0, barriers = 0, splits = 0, vertical = 0, columns = 0, regional = 0;
  std::int64_t elements = 0, allowed = 0, nan = 0;  ///< of outputs
  std::size_t in_phase = 0, resident = 0, tiles = 0, one_pass = 0, clusters = 0;
  sim::SanitizerCounts sanitized;
  std::set<std::string> settings;

  void add(const FusionPlan& plan) {
    for (const KernelPlan& kernel : plan.kernels) {
      ++kernels;
      barriers += kernel.launch.grid_barriers > 0;
      for (const Group& group : kernel.groups) {
        splits += group.mapping.split > 1;
        vertical += group.mapping.tasks_per_block > 1;
        columns += group.mapping.kind == MappingKind::kColumn;
      }
      for (const auto& [op, scheme] : kernel.schemes) regional += scheme == Scheme::kRegional;
      in_phase += kernel.in_phase.size();
      resident += kernel.resident.size();
      tiles += kernel.tiles.size();
      clusters += kernel.launch.cluster > 1;
      for (const Group& group : kernel.groups) one_pass += group.one_pass.size();
    }
  }
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
    run_options_.sanitize = {.race = true, .init = true};
  }

  /// Plans, compiles and runs; what went wrong, or "".
  std::string outcome(const Graph& graph, Reference& reference, const Device& device,
                      const PlannerSetting& setting, std::uint32_t seed) {
    try {
      FusionPlan plan = make_plan(graph, device, setting.planner, setting.options);
      const auto one_pass = setting.options.knobs.find("one_pass");
      if (one_pass == setting.options.knobs.end() || one_pass->second == "on") gather_all(graph, plan);
      share_all(graph, device, seed, plan);
      if (const std::vector<Verdict> problems = verify(graph, device, plan); !problems.empty())
        return problems[0].why;
      coverage_.add(plan);
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
  Device hopper = testing::few_sms("h200", 16);
  hopper.gpcs = 1;  // which holds any cluster
  const Device devices[] = {device("v100"), testing::few_sms("t4", 2), hopper};
  const testing::FuzzRange range = testing::fuzz_range(0, kSeeds);
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    const std::string text = testing::random_hlo(seed, testing::fuzz_options(seed));
    std::optional<Graph> graph;
    std::optional<Reference> reference;
    ASSERT_NO_THROW({
      graph = canonicalize(parse_hlo(text, "random.hlo"));
      reference.emplace(*graph, testing::fuzz_inputs(*graph, seed));
    }) << "seed "
       << seed << "\n"
       << text;
    std::mt19937 random(seed);
    for (const PlannerSetting& setting : testing::settings_of(seed, kSettings)) {
      const Device& where = devices[random() % 3];
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
  const Coverage& c = coverage_;
  std::cout << fmt::format(
      "{} graphs, {} runs, {} planner settings; {} kernels, {} with grid barriers; groups: {} split, {} of "
      "several "
      "tasks a block, {} by columns; {} regional values, {} global ones had in their phase, {} resident "
      "ones; {} tiles; {} reductions gathered in another's pass; {} kernels in clusters; of {} elements {} "
      "needed the allowance of their rounding, {} were NaN; {} accesses checked "
      "for races, "
      "{} "
      "reads for initialisation\n",
      range.end - range.first, c.runs, c.settings.size(), c.kernels, c.barriers, c.splits, c.vertical,
      c.columns, c.regional, c.in_phase, c.resident, c.tiles, c.one_pass, c.clusters, c.elements, c.allowed,
      c.nan, c.sanitized.race_accesses, c.sanitized.init_accesses);
  EXPECT_GT(c.barriers, 0);
  EXPECT_GT(c.clusters, 0u);
  EXPECT_GT(c.splits, 0);
  EXPECT_GT(c.vertical, 0);
  EXPECT_GT(c.columns, 0);
  EXPECT_GT(c.regional, 0);
  EXPECT_GT(c.in_phase, 0);
  EXPECT_GT(c.tiles, 0);
  EXPECT_LT(c.nan, c.elements / 20) << "NaN proves little";
  EXPECT_LT(c.allowed, c.elements / 20);
  for (const PlannerSetting& setting : testing::planner_settings())
    EXPECT_TRUE(c.settings.contains(setting.text())) << setting.text() << " was never tried";
}

}  // namespace
}  // namespace stitchwork
