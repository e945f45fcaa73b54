// Staged rows that are copied asynchronously: plans with any number of tasks at a time, and what they do.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/forms/staging.h"
#include "analysis/verify/verify.h"
#include "core/base/arithmetic.h"
#include "tests/codegen/planned.h"
#include "tests/codegen/workloads.h"
#include "tests/support/mapping_fields.h"

namespace stitchwork::testing {

inline Graph workload_of(const char* name, std::int64_t rows, std::int64_t cols, const char* dtype) {
  return graph_of(workload(name).hlo({rows, cols, dtype}));
}

inline FusionPlan planned(const Graph& graph, const Device& target, const std::string& copies = "on") {
  PlanOptions options;
  options.knobs["async_copies"] = copies;
  return make_plan(graph, target, "astitch", options);
}
inline FusionPlan planned(const Graph& graph, const std::string& target = "h200",
                          const std::string& copies = "on") {
  return planned(graph, device(target), copies);
}

inline std::optional<MappingFields> staged(const FusionPlan& plan) {
  for (const KernelPlan& kernel : plan.kernels)
    for (const Group& group : kernel.groups)
      if (is_staged(group.mapping)) return group;
  return std::nullopt;
}

/// The plan with tiles for so many tasks of a block, each of `share` of the rows it had; without grid
/// barriers a block has `tasks` of them.
inline bool restage(const Graph& graph, FusionPlan& plan, int stages, std::int64_t tasks, int share = 1) {
  for (KernelPlan& kernel : plan.kernels) {
    if (kernel.tiles.empty()) continue;
    kernel.launch.shared_bytes = kernel.tiles.front().offset;
    for (const Tile& tile : kernel.tiles)
      kernel.launch.shared_bytes = std::min(kernel.launch.shared_bytes, tile.offset);
    kernel.tiles.clear();
    for (Group& group : kernel.groups) {
      if (!is_staged(group.mapping)) continue;
      MappingFields m = group;
      m.stages = stages;
      if (stages == 0) m.bulk = false;
      m.rows_per_block /= share;
      m.tasks = ceil_div(m.rows, m.rows_per_block);
      if (kernel.launch.grid_barriers == 0) {
        m.blocks = ceil_div(m.tasks, tasks);
        kernel.launch.grid = m.blocks;
      }
      m.tasks_per_block = ceil_div(m.tasks, m.blocks);
      m.give(group);
    }
    if (!astitch::stage_rows(graph.entry_computation(), kernel)) return false;
  }
  return true;
}

struct Ran {
  std::string cuda, ptx;
  double bytes_in_flight = 0, load_spread = 0;
  sim::Counters counters;
};

inline Ran expect_right(const Graph& graph, const Device& target, const FusionPlan& plan,
                        const std::string& compiler = "") {
  for (const Verdict& problem : verify(graph, target, plan))
    ADD_FAILURE() << problem.rule << ": " << problem.why << "\n" << to_text(graph, plan);
  const SanitizedRun sanitized = run_sanitized(graph, target, plan, compiler);
  const RunResult& run = sanitized.run;
  Ran ran;
  const CompiledKernel& kernel = sanitized.executable.kernels.at(0);
  ran.cuda = kernel.cuda.substr(kernel.cuda.find("extern \"C\""));
  ran.ptx = kernel.ptx;
  if (run.kernels.empty()) return ran;
  ran.bytes_in_flight = run.kernels[0].bytes_in_flight;
  const sim::Counters& c = run.kernels[0].counters;
  ran.counters = c;
  ran.load_spread = static_cast<double>(c.gld_transactions) * 32 / static_cast<double>(c.gld_bytes);
  return ran;
}
inline Ran expect_right(const Graph& graph, const FusionPlan& plan, const std::string& compiler = "") {
  return expect_right(graph, device(plan.device), plan, compiler);
}

/// Where a test has many plans: an eighth of an H200, which stages an eighth of the rows as the whole does
/// all.
inline const Device& eighth_of_h200() {
  static const Device target = share_of("h200", 16);
  return target;
}

}  // namespace stitchwork::testing
