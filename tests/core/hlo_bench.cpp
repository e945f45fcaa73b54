// Loading and canonicalising a long chain of element-wise ops, broadcasts and reductions.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

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

/// About 100 MB of text in ten constants of a million floats each, as exporters print weights. Reads it from
/// a file, as the command line does; `peak MB` is the most memory the process ever held.
void load_large_constants(benchmark::State& state) {
  const std::string path = (std::filesystem::temp_directory_path() / "stitchwork_constants.hlo").string();
  {
    std::ofstream file(path);
    file << "HloModule constants\n\nENTRY main {\n  x = f32[1000,1000]{1,0} parameter(0)\n";
    for (int c = 0; c < 10; ++c) {
      file << fmt::format("  c.{} = f32[1000,1000]{{1,0}} constant({{ ", c);
      for (int i = 0; i < 1000; ++i) {
        file << (i == 0 ? "{ " : ", { ");
        for (int j = 0; j < 1000; ++j)
          file << (j == 0 ? "" : ", ") << fmt::format("{:.7f}", 0.001 * (i - j) + 0.1 * c + 1e-7 * j);
        file << " }";
      }
      file << fmt::format(" }})\n  a.{0} = f32[1000,1000]{{1,0}} add({1}, c.{0})\n", c,
                          c == 0 ? "x" : fmt::format("a.{}", c - 1));
    }
    file << "  ROOT r = f32[1000,1000]{1,0} negate(a.9)\n}\n";
  }
  for (auto _ : state) benchmark::DoNotOptimize(read_graph(path));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * std::filesystem::file_size(path)));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  std::filesystem::remove(path);
}
BENCHMARK(load_large_constants)->Unit(benchmark::kMillisecond);

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
