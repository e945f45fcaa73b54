// The whole road of `ptx run`: parse, allocate, run. Target: vecadd of a million floats in under 0.05 s.
#include <benchmark/benchmark.h>

#include "simulator/ptx_run.h"
#include "tests/simulator/sim_support.h"

namespace stitchwork::sim {
namespace {

void run_fixture(benchmark::State& state, const char* file, Launch launch,
                 const std::vector<std::string>& arguments) {
  const std::string text = fixture_text(file);
  std::uint64_t instructions = 0;
  for (auto _ : state) {
    const ptx::Module module = ptx::parse(text, file);
    const PtxRun r = run_ptx(module, launch, arguments, device("v100"), {});
    if (!r.result.findings.empty()) state.SkipWithError("finding");
    instructions += r.result.counters.thread_inst_executed;
  }
  state.counters["thread instructions/s"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}

void vecadd(benchmark::State& state) {
  run_fixture(state, "vecadd.ptx", {.kernel = "vecadd", .grid = {4096, 1, 1}, .block = {256, 1, 1}},
              {"buf:f32:1048576:seed=1", "buf:f32:1048576:seed=2", "buf:f32:1048576:zero", "i32:1048576"});
}
BENCHMARK(vecadd)->Unit(benchmark::kMillisecond);

void softmax(benchmark::State& state) {
  run_fixture(state, "softmax.ptx", {.kernel = "softmax", .grid = {4096, 1, 1}, .block = {256, 1, 1}},
              {"buf:f32:4194304:seed=1", "buf:f32:4194304:zero", "i32:1024"});
}
BENCHMARK(softmax)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stitchwork::sim
