// Loading and canonicalising a long chain of element-wise ops, broadcasts and reductions.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "core/hlo_text.h"
#include "core/passes.h"

namespace stitchwork {
namespace {

std::string chain_text(std::int64_t ops) {
  std::string text = R"(HloModule chain, entry_computation_layout={(f32[64,128]{1,0})->f32[64,128]{1,0}}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x.0 = f32[64,128]{1,0} parameter(0)
  zero = f32[] constant(0)
)";
  for (std::int64_t i = 1; i <= ops / 4; ++i) {
    text += fmt::format(R"(  r.{0} = f32[64]{{0}} reduce(x.{1}, zero), dimensions={{1}}, to_apply=sum
  b.{0} = f32[64,128]{{1,0}} broadcast(r.{0}), dimensions={{0}}
  s.{0} = f32[64,128]{{1,0}} subtract(x.{1}, b.{0}), metadata={{op_name="jit(f)/layer_{0}/sub" source_line=7}}
  {2}x.{0} = f32[64,128]{{1,0}} exponential(s.{0}), metadata={{op_name="jit(f)/layer_{0}/exp" source_line=7}}
)",
                        i, i - 1, i == ops / 4 ? "ROOT " : "");
  }
  return text + "}\n";
}

void load_hlo(benchmark::State& state) {
  const std::string text = chain_text(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(parse_hlo(text, "chain.hlo"));
}
BENCHMARK(load_hlo)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void print_hlo(benchmark::State& state) {
  const Graph graph = parse_hlo(chain_text(state.range(0)), "chain.hlo");
  for (auto _ : state) benchmark::DoNotOptimize(to_text(graph));
}
BENCHMARK(print_hlo)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void canonicalize_graph(benchmark::State& state) {
  const Graph graph = parse_hlo(chain_text(state.range(0)), "chain.hlo");
  for (auto _ : state) benchmark::DoNotOptimize(canonicalize(graph));
}
BENCHMARK(canonicalize_graph)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stitchwork
