// A graph planned, compiled and run on the GPU that is the simulator.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "runtime/run.h"
#include "tests/codegen/harness.h"
#include "tests/runtime/fake_cuda.h"

namespace stitchwork::testing {

struct Ran {
  RunResult result;
  CheckResult check;
};

inline CompileOptions compile_options() {
  CompileOptions options;
  return options;
}

inline Ran run_on_fake_gpu(FakeGpu& gpu, const Graph& graph, const cu::CudaOptions& options,
                           const cu::CudaLibraries& libraries, const char* planner = "astitch",
                           const CompileOptions& compiling = compile_options(),
                           const PlanOptions& planning = {}) {
  const Executable executable =
      compile(graph, gpu.device, make_plan(graph, gpu.device, planner, planning), compiling);
  const std::vector<Literal> inputs = generate_inputs(graph, 0);
  cu::CudaBackend backend(fake_driver(gpu), gpu.device, options, libraries);
  Ran ran{run_on(backend, graph, gpu.device, executable, inputs), {}};
  ran.check = Judge(graph, inputs, {.tf32 = options.tf32}).check(ran.result.outputs);
  return ran;
}

inline void expect_right(const Ran& ran) { EXPECT_TRUE(ran.check.ok) << ran.check.message; }

/// What the error says; "" where there is none.
inline std::string refusal(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace stitchwork::testing
