#include "experiments/minibatch_runner.h"

#include <fmt/format.h>

#include <set>

#include "codegen/settle.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "experiments/memory_need.h"

namespace stitchwork {
namespace {

constexpr const char* kFreeMemory = "modelled mini-batches take a model of any size: leave out --times";

CompileOptions compile_options(const TrialSpec& trial) {
  CompileOptions options = trial.compile;
  options.cubin = trial.backend == "cuda";
  return options;
}

}  // namespace

MiniBatchRunner::MiniBatchRunner(const Model& model, const TrialSpec& trial,
                                 std::shared_ptr<const cuda::Driver> driver, cuda::CudaLibraries libraries)
    : model_(model), trial_(trial), target_(target_of(trial)) {
  const bool measured = trial.backend == "cuda";
  if (measured && driver == nullptr) driver = cuda::load_driver();
  require_runnable(model.graph);
  require_memory(input_bytes(model.graph), "the parameters of the run", kFreeMemory);
  if (!measured) return;
  cuda::CudaOptions options{.repeats = trial.repeats, .points = true};
  options.tf32 = trial.options.tf32;
  options.convolutions = cuda::parse_convolutions(trial.convolutions);
  options.compile = compile_options(trial);
  backend_ = std::make_unique<cuda::CudaBackend>(std::move(driver), target_, options, std::move(libraries));
  gpu_ = backend_->gpu();
}

RunResult MiniBatchRunner::run(const FusionPlan& plan, std::span<const Literal> inputs) {
  require_memory(run_bytes(model_.graph, plan, backend_ == nullptr && !trial_.sampled, trial_.check),
                 "a mini-batch", kFreeMemory);
  const Executable executable = compile_settled(model_.graph, target_, plan, {}, compile_options(trial_));
  RunResult result;
  if (backend_ != nullptr) {
    result = run_on(*backend_, model_.graph, target_, executable, inputs);
  } else {
    RunOptions options;
    options.cache = trial_.cache;
    options.sampled = trial_.sampled;
    options.sanitize = trial_.sanitize;
    options.compile = compile_options(trial_);
    result = run_simulated(model_.graph, target_, executable, inputs, options);
  }
  if (!result.findings.empty())
    throw Error(model_.graph.source, 0, 0,
                "a kernel of a mini-batch is at fault: " + result.findings.front().message,
                "this is a bug in stitchwork; please report it with the command line");
  return result;
}

astra::Pass measured_pass(const Model& model, const RunResult& run) {
  if (!run.repeated) {
    const std::set<std::string> host(run.host_calls.begin(), run.host_calls.end());
    SW_CHECK(!host.empty(), "a run on a GPU has no time of its own");
    throw Error(
        model.graph.source, 0, 0,
        fmt::format("the host computes {}{}, so that a mini-batch has no time on the GPU", *host.begin(),
                    host.size() == 1 ? "" : fmt::format(" and {} more ops", host.size() - 1)),
        "explore modelled or simulated times");
  }
  return {run.repeated->ends_us, run.repeated->stream_us};
}

}  // namespace stitchwork
