// Time of planning, cost and check included (make_plan), of every planner; how it grows, and memory.
//
// Decoders are GPT-2's: gpt2_step (1,102 nodes) 1, 14 and 140 times one after the other, and an export
// that is unrolled (gpt2_decoder_10k). Counters: nodes; us_per_node; exponent: p in time ~ nodes^p since the
// single step; max_rss_mb: the largest resident set of the process so far, graphs included.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <string>

#include "analysis/planners/planner.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "tests/support/chain.h"
#include "tests/support/graphs.h"
#include "tests/support/random_graph.h"

namespace stitchwork {
namespace {

double max_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Returns the seconds of the fastest iteration.
double plan(benchmark::State& state, const Graph& graph, const std::string& planner) {
  double fastest = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const double start = cpu_seconds();
    benchmark::DoNotOptimize(make_plan(graph, device("v100"), planner));
    fastest = std::min(fastest, cpu_seconds() - start);
  }
  const double nodes = graph.entry_computation().size();
  state.counters["nodes"] = nodes;
  state.counters["us_per_node"] = fastest * 1e6 / nodes;
  state.counters["max_rss_mb"] = max_rss_mb();
  return fastest;
}

void plan_dataset(benchmark::State& state, const std::string& name, const std::string& planner) {
  plan(state, testing::dataset(name), planner);
}

Graph chained(const Graph& graph, int copies) { return canonicalize(testing::chain(graph, copies)); }

void plan_steps(benchmark::State& state, const std::string& planner) {
  const Graph step = testing::dataset("gpt2_step");
  const Graph graph = chained(step, static_cast<int>(state.range(0)));
  const double seconds = plan(state, graph, planner);
  if (state.range(0) == 1) return;
  double once = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = cpu_seconds();
    benchmark::DoNotOptimize(make_plan(step, device("v100"), planner));
    once = std::min(once, cpu_seconds() - start);
  }
  const double growth =
      static_cast<double>(graph.entry_computation().size()) / step.entry_computation().size();
  state.counters["exponent"] = std::log(seconds / once) / std::log(growth);
}

void plan_training(benchmark::State& state, const std::string& planner) {
  plan(state, chained(testing::dataset("gpt2_training"), static_cast<int>(state.range(0))), planner);
}

void plan_random(benchmark::State& state, const std::string& planner) {
  testing::RandomGraphOptions options;
  options.ops = static_cast<int>(state.range(0));
  options.max_elements = 1 << 13;
  plan(state, canonicalize(parse_hlo(testing::random_hlo(7, options), "random.hlo")), planner);
}

/// What comes before planning: reading and cleaning up the text.
void read_dataset(benchmark::State& state, const std::string& name) {
  for (auto _ : state) benchmark::DoNotOptimize(testing::dataset(name));
}

const bool registered = [] {
  const auto add = [](const std::string& name, auto function, auto... arguments) {
    return benchmark::RegisterBenchmark(name.c_str(), function, arguments...)->Unit(benchmark::kMillisecond);
  };
  for (const std::string name : {"bert_base", "gpt2_decoder_10k", "gpt2_training"})
    add("read/" + name, read_dataset, name);
  for (const Planner& row : planners()) {
    if (row.takes != nullptr) continue;
    const std::string planner(row.name);
    for (const std::string name : {"bert_base", "bert_train", "gpt2_decoder_10k"})
      add("plan/" + name + "/" + planner, plan_dataset, name, planner);
    add("plan_steps/" + planner, plan_steps, planner)->Arg(1)->Arg(14)->Arg(140);
    add("plan_training/" + planner, plan_training, planner)->Arg(1)->Arg(3);
    add("plan_random/" + planner, plan_random, planner)->Arg(1000)->Arg(10000);
  }
  return true;
}();

}  // namespace
}  // namespace stitchwork
