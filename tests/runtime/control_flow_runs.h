// Modules with loops and branches by several planners, in the simulator with all its sanitizers and on the
// GPU that is the simulator, against the evaluator.
#pragma once

#include "tests/runtime/fake_cublas.h"
#include "tests/runtime/on_fake_gpu.h"
#include "tests/support/random_control_flow.h"

namespace stitchwork::testing {

inline constexpr const char* kControlFlowPlanners[] = {"unfused", "xla", "tvm", "astitch", "auto"};
inline constexpr const char* kControlFlowDevices[] = {"v100", "h200"};

struct ControlFlowRuns {
  int runs = 0;
  std::int64_t launches = 0;  ///< of kernels, by loops and branches too
  std::int64_t init_reads = 0;

  /// What goes wrong in either backend, or "".
  std::string problem(const Graph& graph, Judge& judge, const char* device_id, const char* planner) {
    const std::vector<Literal>& inputs = judge.inputs();
    // So little memory that it is taken as it is needed: 64 MiB at once take longer than the run.
    FakeGpu gpu{.device = device(device_id), .memory_bytes = std::size_t{8} << 20};
    CompileOptions compiling = compile_options();
    compiling.ptxas = false;
    try {
      const Executable executable =
          compile(graph, gpu.device, make_plan(graph, gpu.device, planner), compiling);
      RunOptions options;
      options.sanitize = {.race = true, .init = true};
      const RunResult simulated = run_simulated(graph, gpu.device, executable, inputs, options);
      add(simulated);
      if (!simulated.findings.empty())
        return fmt::format("simulator: {} in {}: {}", name(simulated.findings[0].kind),
                           simulated.findings[0].kernel, simulated.findings[0].message);
      if (std::string wrong = judge.check(simulated.outputs).message; !wrong.empty())
        return "simulator: " + wrong;
      cu::CudaBackend backend(fake_driver(gpu), gpu.device, {.repeats = 0}, {fake_blas, {}});
      const RunResult driven = run_on(backend, graph, gpu.device, executable, inputs);
      if (std::string wrong = judge.check(driven.outputs).message; !wrong.empty()) return "driver: " + wrong;
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  /// Under every planner, which is named before what is wrong, for every device or for one each in turn.
  std::vector<std::string> problems(const std::string& text, std::uint32_t seed, bool every_device) {
    const Graph graph = canonicalize(parse_hlo(text, "control.hlo"));
    Judge judge(graph, generate_inputs(graph, seed));
    std::vector<std::string> found;
    std::size_t turn = seed;
    for (const char* planner : kControlFlowPlanners) {
      ++turn;
      for (std::size_t d = 0; d < std::size(kControlFlowDevices); ++d) {
        if (!every_device && d != turn % std::size(kControlFlowDevices)) continue;
        const char* const device_id = kControlFlowDevices[d];
        if (const std::string wrong = problem(graph, judge, device_id, planner); !wrong.empty())
          found.push_back(fmt::format("{} for {}: {}", planner, device_id, wrong));
      }
    }
    return found;
  }

 private:
  void add(const RunResult& run) {
    ++runs;
    for (const KernelRun& kernel : run.kernels) launches += kernel.launches;
    for (const ComputationRun& part : run.computations)
      for (const KernelRun& kernel : part.kernels) launches += kernel.launches;
    init_reads += static_cast<std::int64_t>(run.sanitized.init_accesses);
  }
};

}  // namespace stitchwork::testing
