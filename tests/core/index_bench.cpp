#include <benchmark/benchmark.h>

#include "core/hlo/hlo_text.h"
#include "core/index/index_map.h"

namespace stitchwork {
namespace {

IndexMap reshape(const std::vector<std::int64_t>& out, const std::vector<std::int64_t>& in) {
  IndexMap map;
  map.dims = out;
  std::vector<IndexExpr> index;
  for (std::size_t i = 0; i < out.size(); ++i) index.push_back(IndexExpr::dim(static_cast<int>(i)));
  map.results = delinearize(linearize(index, out), in);
  return simplify(std::move(map));
}

void compose_row_broadcast(benchmark::State& state) {
  IndexMap broadcast = IndexMap::identity(std::vector<std::int64_t>{128, 768});
  broadcast.results.pop_back();
  const IndexMap transpose = simplify({{768, 128}, {}, {}, {IndexExpr::dim(1), IndexExpr::dim(0)}, {}});
  for (auto _ : state) benchmark::DoNotOptimize(compose(transpose, broadcast));
}
BENCHMARK(compose_row_broadcast);

void compose_attention_heads(benchmark::State& state) {
  const IndexMap merge = reshape({128, 768}, {128, 12, 64}), split = reshape({128, 12, 64}, {128, 768});
  for (auto _ : state) benchmark::DoNotOptimize(compose(merge, split));
}
BENCHMARK(compose_attention_heads);

void compose_misaligned_reshapes(benchmark::State& state) {
  const IndexMap a = reshape({6, 4, 10}, {8, 3, 10}), b = reshape({8, 3, 10}, {5, 48});
  for (auto _ : state) benchmark::DoNotOptimize(compose(a, b));
}
BENCHMARK(compose_misaligned_reshapes);

void operand_maps_of_bert_base(benchmark::State& state) {
  const Graph graph = read_graph(STITCHWORK_SOURCE_DIR "/datasets/bert_base.hlo");
  std::int64_t edges = 0;
  for (auto _ : state)
    for (const Computation& computation : graph.computations)
      for (const Node& node : computation.nodes)
        for (std::size_t i = 0; i < node.operands.size(); ++i, ++edges)
          benchmark::DoNotOptimize(operand_map(computation, node.id, static_cast<int>(i)));
  state.SetItemsProcessed(edges);
}
BENCHMARK(operand_maps_of_bert_base)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stitchwork
