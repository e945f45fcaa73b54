// Mini-batches of an exploration as they are run: whole plans, one after the other, on one backend.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "analysis/planners/astra/minibatches.h"
#include "experiments/trial.h"

namespace stitchwork {

class MiniBatchRunner {
 public:
  /// Of the trial backend, device, sanitizers, options of compiling, repeats and convolutions count. Of
  /// "cuda" one backend serves all mini-batches, so that modules, library handles and streams are made once.
  /// Both outlive this. Throws Error where there is no GPU, or not of the trial's kind, and for a model that
  /// cannot be run. `driver`, `libraries`: of the GPU; null: this machine's.
  MiniBatchRunner(const Model& model, const TrialSpec& trial, std::shared_ptr<const cuda::Driver> driver = {},
                  cuda::CudaLibraries libraries = {cuda::Blas::load, cuda::Dnn::load});

  /// Throws Error where a kernel is at fault.
  RunResult run(const FusionPlan& plan, std::span<const Literal> inputs);

  const std::optional<cuda::Gpu>& gpu() const { return gpu_; }  ///< nothing: simulated
  bool has_blas() const { return backend_ != nullptr && backend_->has_blas(); }

 private:
  const Model& model_;
  const TrialSpec& trial_;
  Device target_;
  std::optional<cuda::Gpu> gpu_;
  std::unique_ptr<cuda::CudaBackend> backend_;
};

/// What a run on a GPU took as a whole. Throws Error where the host took part, so that it has no time of its
/// own.
astra::Pass measured_pass(const Model& model, const RunResult& run);

}  // namespace stitchwork
