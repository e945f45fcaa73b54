// Time of planning, cost and check included.
#include <benchmark/benchmark.h>

#include <string>

#include "analysis/planner.h"
#include "core/hlo_text.h"
#include "core/passes.h"
#include "tests/support/random_graph.h"

namespace stitchwork {
namespace {

void plan(benchmark::State& state, const Graph& graph, const char* planner) {
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(graph, device("v100"), planner));
  state.counters["nodes"] = graph.entry_computation().size();
}

void plan_bert_base(benchmark::State& state, const char* planner) {
  plan(state, canonicalize(read_graph(STITCHWORK_SOURCE_DIR "/datasets/bert_base.hlo")), planner);
}

void plan_random(benchmark::State& state, const char* planner) {
  testing::RandomGraphOptions options;
  options.ops = static_cast<int>(state.range(0));
  options.max_elements = 1 << 13;
  plan(state, canonicalize(parse_hlo(testing::random_hlo(7, options), "random.hlo")), planner);
}

BENCHMARK_CAPTURE(plan_bert_base, unfused, "unfused")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_bert_base, xla, "xla")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_bert_base, astitch, "astitch")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_random, unfused, "unfused")->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_random, xla, "xla")->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_random, astitch, "astitch")->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stitchwork
