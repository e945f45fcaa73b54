// Hand-built kernel plans, and running them in the simulator against the reference evaluator.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/plan/assemble.h"
#include "analysis/planners/planner.h"
#include "analysis/schedule/launch.h"
#include "codegen/compile/compiler.h"
#include "codegen/executable.h"
#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "runtime/run.h"
#include "tests/support/graphs.h"
#include "tests/support/mapping_fields.h"

namespace stitchwork::testing {

inline std::vector<std::string> installed_compilers() {
  std::vector<std::string> names;
  if (find_nvrtc()) names.emplace_back("nvrtc");
  if (find_clang()) names.emplace_back("clang");
  return names;
}

inline MappingFields mapping_of(MappingKind kind, std::int64_t rows, std::int64_t cols,
                                std::int64_t rows_per_block, int threads_per_row = 1,
                                std::int64_t tasks_per_block = 1, int split = 1,
                                Combine combine = Combine::kNone) {
  MappingFields m;
  m.kind = kind;
  m.rows = rows;
  m.cols = cols;
  m.rows_per_block = rows_per_block;
  m.threads_per_row = threads_per_row;
  m.split = split;
  m.combine = combine;
  m.tasks = (rows + rows_per_block - 1) / rows_per_block * split;
  m.blocks = (m.tasks + tasks_per_block - 1) / tasks_per_block;
  m.tasks_per_block = (m.tasks + m.blocks - 1) / m.blocks;
  return m;
}

/// One kernel of one group: everything generated in the graph, `materialised` (the first dominates) stored.
inline KernelPlan one_group(const Graph& graph, const std::vector<std::string>& materialised,
                            const Dealt& dealt, int block) {
  const Computation& computation = graph.entry_computation();
  KernelPlan kernel;
  Group group;
  for (const Node& node : computation.nodes) {
    if (node.op == Op::kParameter || node.op == Op::kConstant || node.op == Op::kTuple) continue;
    kernel.ops.push_back(node.id);
    kernel.schemes[node.id] = Scheme::kLocal;
    kernel.levels[node.id] = 0;
  }
  group.ops = kernel.ops;
  group.mapping = dealt.mapping;
  group.deal = dealt.deal;
  group.dominant = computation.find(materialised.at(0));
  for (std::size_t i = 1; i < materialised.size(); ++i)
    group.sub_dominants.push_back(computation.find(materialised[i]));
  for (const std::string& name : materialised) kernel.schemes[computation.find(name)] = Scheme::kIndependent;
  kernel.groups = {group};
  kernel.launch.block = block;
  kernel.launch.grid = dealt.deal.blocks();
  return kernel;
}

inline FusionPlan plan_of(const Graph& graph, const KernelPlan& kernel) {
  return assemble(graph, device("v100"), "test", {kernel});
}

/// For inputs of seed 0. The last graph's is kept: plans of one graph are judged by the same samples, which
/// take longer to draw than most kernels to run.
inline Judge& judge_of(const Graph& graph) {
  struct Kept {
    Kept(const Graph& of, std::string printed)
        : text(std::move(printed)), graph(of), judge(graph, generate_inputs(graph, 0)) {}
    const std::string text;
    const Graph graph;
    Judge judge;
  };
  static std::unique_ptr<Kept> kept;
  if (std::string text = to_text(graph); !kept || kept->text != text)
    kept = std::make_unique<Kept>(graph, std::move(text));
  return kept->judge;
}

/// Compiles for the plan's device with each installed compiler, runs in the simulator, compares with the
/// evaluator. Returns the counters of the last run, summed over kernels.
inline sim::Counters expect_correct(const Graph& graph, const FusionPlan& plan, Judge& judge) {
  sim::Counters counters;
  const Device& target = device(plan.device);
  for (const std::string& compiler : installed_compilers()) {
    CompileOptions options;
    options.compiler = compiler;
    options.ptxas = false;
    const Executable executable = compile(graph, target, plan, options);
    const RunResult run = run_simulated(graph, target, executable, judge.inputs());
    for (const sim::Finding& finding : run.findings)
      ADD_FAILURE() << compiler << ": " << name(finding.kind) << " in " << finding.kernel << ": "
                    << finding.message;
    if (!run.findings.empty()) continue;
    const CheckResult check = judge.check(run.outputs);
    EXPECT_TRUE(check.ok) << compiler << ": " << check.message;
    counters = {};
    for (const KernelRun& kernel : run.kernels) {
      counters.gld_transactions += kernel.counters.gld_transactions;
      counters.gst_transactions += kernel.counters.gst_transactions;
      counters.gld_bytes += kernel.counters.gld_bytes;
      counters.gst_bytes += kernel.counters.gst_bytes;
      counters.grid_barriers += kernel.counters.grid_barriers;
    }
  }
  return counters;
}

inline sim::Counters expect_correct(const Graph& graph, const FusionPlan& plan,
                                    const std::vector<Literal>& inputs) {
  Judge judge(graph, inputs);
  return expect_correct(graph, plan, judge);
}
inline sim::Counters expect_correct(const Graph& graph, const FusionPlan& plan) {
  return expect_correct(graph, plan, judge_of(graph));
}

}  // namespace stitchwork::testing

#define SKIP_WITHOUT_COMPILER()                             \
  if (::stitchwork::testing::installed_compilers().empty()) \
  GTEST_SKIP() << "neither NVRTC nor clang is installed"
