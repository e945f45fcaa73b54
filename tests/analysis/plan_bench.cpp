// Planning time of whole models (the bound kept: bert_base under 0.3 s).
#include <benchmark/benchmark.h>

#include "analysis/planner.h"
#include "core/hlo_text.h"

namespace stitchwork {
namespace {

void plan_model(benchmark::State& state, const char* model, const char* planner_name) {
  const Graph graph = read_graph(std::string(STITCHWORK_SOURCE_DIR "/datasets/") + model + ".hlo");
  const Device& target = device("v100");
  const Planner& row = planner(planner_name);
  for (auto _ : state) benchmark::DoNotOptimize(row.plan(graph, target, {}));
}

BENCHMARK_CAPTURE(plan_model, bert_layer_astitch, "bert_layer", "astitch")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_model, bert_base_astitch, "bert_base", "astitch")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stitchwork
