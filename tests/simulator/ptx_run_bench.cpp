// Thread instructions a second, counters and L2 model on: of the simulation alone (simulate_*), and of the
// whole road of `ptx run` with parsing and filling buffers (whole_*). Target: 5 G/s, 0.4 G/s where every lane
// reads a sector of its own. The CPU column is of all threads: on a machine that others use too, compare it.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

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

void simulate(benchmark::State& state, const char* file, Launch launch,
              const std::vector<std::string>& arguments, Sanitizers sanitize = {}) {
  const ptx::Module module = fixture(file);
  DeviceMemory memory(sanitize.init);
  for (const std::string& text : arguments) {
    ArgumentSpec spec = parse_argument(text);
    launch.arguments.push_back(
        spec.buffer ? Argument::pointer(memory.adopt(std::move(spec.buffer->bytes), text)) : spec.scalar);
  }
  Options options;
  options.sanitize = sanitize;
  std::uint64_t instructions = 0;
  for (auto _ : state) {
    const LaunchResult r = run(module, launch, memory, device("v100"), options);
    if (!r.findings.empty()) state.SkipWithError("finding");
    instructions += r.counters.thread_inst_executed;
  }
  state.counters["thread instructions/s"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}

struct Case {
  const char* name;
  const char* file;
  Launch launch;
  std::vector<std::string> arguments;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"vecadd",
       "vecadd.ptx",
       {.kernel = "vecadd", .grid = {4096, 1, 1}, .block = {256, 1, 1}},
       {"buf:f32:1048576:seed=1", "buf:f32:1048576:seed=2", "buf:f32:1048576:zero", "i32:1048576"}},
      {"softmax",
       "softmax.ptx",
       {.kernel = "softmax", .grid = {4096, 1, 1}, .block = {256, 1, 1}},
       {"buf:f32:4194304:seed=1", "buf:f32:4194304:zero", "i32:1024"}},
      {"gemm",
       "tiled_gemm.ptx",
       {.kernel = "tiled_gemm", .grid = {32, 32, 1}, .block = {16, 16, 1}},
       {"buf:f32:262144:seed=1", "buf:f32:262144:seed=2", "buf:f32:262144:zero", "i32:512"}},
      {"scattered",
       "gather.ptx",
       {.kernel = "gather", .grid = {256, 1, 1}, .block = {256, 1, 1}},
       {"buf:f32:1048576:seed=1", "buf:i32:65536:seed=2", "buf:f32:65536:zero", "i32:64"}}};
  return kCases;
}

const int registered = [] {
  for (const Case& c : cases()) {
    benchmark::RegisterBenchmark(
        fmt::format("simulate_{}", c.name).c_str(),
        [&c](benchmark::State& state) { simulate(state, c.file, c.launch, c.arguments); })
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
    benchmark::RegisterBenchmark(fmt::format("sanitize_{}", c.name).c_str(),
                                 [&c](benchmark::State& state) {
                                   simulate(state, c.file, c.launch, c.arguments,
                                            {.race = true, .init = true});
                                 })
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
    benchmark::RegisterBenchmark(
        fmt::format("whole_{}", c.name).c_str(),
        [&c](benchmark::State& state) { run_fixture(state, c.file, c.launch, c.arguments); })
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
  }
  return 0;
}();

}  // namespace
}  // namespace stitchwork::sim
