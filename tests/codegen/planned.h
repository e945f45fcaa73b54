// Whatever the planners make of a graph computes what the graph says.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/codegen/harness.h"
#include "tests/support/fuzz.h"

namespace stitchwork::testing {

/// Under every planner, and under every thread mapping of those that have several.
inline void expect_planned_correct(const Graph& graph) {
  for (const Planner& planner : planners_for(graph)) {
    const bool maps = std::find(planner.knobs.begin(), planner.knobs.end(), "mapping") != planner.knobs.end();
    for (const char* mapping : {"paper", "tuned"}) {
      PlanOptions options;
      if (maps) options.knobs["mapping"] = mapping;
      SCOPED_TRACE(fmt::format("{} {}", planner.name, mapping));
      expect_correct(graph, make_plan(graph, device("v100"), planner.name, options));
      if (!maps) break;
    }
  }
}

/// A plan's kernels, and what they did under every sanitizer.
struct SanitizedRun {
  Executable executable;
  RunResult run;
};

/// By one compiler ("": the default), of generated inputs. Findings and wrong results fail the test.
inline SanitizedRun run_sanitized(const Graph& graph, const Device& target, const FusionPlan& plan,
                                  const std::string& compiler = "") {
  CompileOptions options;
  options.compiler = compiler;
  options.ptxas = false;
  RunOptions run_options;
  run_options.sanitize = {.race = true, .init = true};
  Judge& judge = judge_of(graph);
  SanitizedRun result{compile(graph, target, plan, options), {}};
  result.run = run_simulated(graph, target, result.executable, judge.inputs(), run_options);
  for (const sim::Finding& finding : result.run.findings)
    ADD_FAILURE() << name(finding.kind) << " in " << finding.kernel << ": " << finding.message;
  if (result.run.findings.empty()) {
    EXPECT_EQ(judge.check(result.run.outputs).message, "");
  }
  return result;
}

/// Sectors of requests of global memory over those of the bytes asked for.
struct SectorSpread {
  double loads = 0, stores = 0;
};

inline SectorSpread sector_spread(const RunResult& run) {
  double loads = 0, load_bytes = 0, stores = 0, store_bytes = 0;
  for (const KernelRun& kernel : run.kernels) {
    loads += static_cast<double>(kernel.counters.gld_transactions);
    load_bytes += static_cast<double>(kernel.counters.gld_bytes);
    stores += static_cast<double>(kernel.counters.gst_transactions);
    store_bytes += static_cast<double>(kernel.counters.gst_bytes);
  }
  return {loads * 32 / load_bytes, stores * 32 / store_bytes};
}

/// Under every planner and mapping by one compiler, with every sanitizer; what two planners make alike runs
/// once. `planners`: these alone; empty: all.
inline void expect_clean_and_right(const Graph& graph, const std::vector<Literal>& inputs,
                                   const Device& target = device("v100"),
                                   const std::set<std::string>& planners = {}) {
  Reference reference(graph, inputs);
  std::set<std::vector<std::string>> seen;
  CompileOptions compile_options;
  compile_options.ptxas = false;
  RunOptions run_options;
  run_options.sanitize = {.race = true, .init = true};
  for (const Planner& planner : planners_for(graph)) {
    if (!planners.empty() && !planners.contains(std::string(planner.name))) continue;
    const bool maps = std::find(planner.knobs.begin(), planner.knobs.end(), "mapping") != planner.knobs.end();
    for (const char* mapping : {"paper", "tuned"}) {
      if (!maps && mapping == std::string("tuned")) continue;
      PlanOptions options;
      if (maps) options.knobs["mapping"] = mapping;
      SCOPED_TRACE(fmt::format("{} {}", planner.name, maps ? mapping : ""));
      const Executable executable = compile(
          graph, target, make_plan(graph, target, std::string(planner.name), options), compile_options);
      std::vector<std::string> sources;
      for (const CompiledKernel& kernel : executable.kernels) sources.push_back(kernel.source_sha256);
      if (!seen.insert(sources).second) continue;
      const RunResult run = run_simulated(graph, target, executable, reference.inputs(), run_options);
      for (const sim::Finding& finding : run.findings)
        ADD_FAILURE() << name(finding.kind) << " in " << finding.kernel << ": " << finding.message;
      if (run.findings.empty()) {
        EXPECT_EQ(reference.problem(run.outputs), "");
      }
    }
  }
}

}  // namespace stitchwork::testing
