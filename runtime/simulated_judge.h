// The simulator as a judge of forms and plans.
#pragma once

#include "analysis/judge/judge.h"
#include "codegen/executable.h"

namespace stitchwork {

/// Compiles every kernel it is asked for and samples its blocks (sim::Options::sampled) on memory of zeros:
/// times do not depend on values but where indices are looked up. Kernels of equal source and launch are
/// simulated once, by device.
class SimulatedJudge final : public PlanJudge {
 public:
  explicit SimulatedJudge(CompileOptions options = {});

  Evidence evidence() const override { return Evidence::kSimulated; }
  double resolution() const override;
  /// Throws Error where the kernel cannot be compiled or launched, or a sanitizer of the simulator finds it
  /// at fault.
  KernelWorth kernel(const Graph& graph, const Device& device, const KernelPlan& kernel) const override;

  std::size_t simulated() const { return cache_.size(); }  ///< different kernels

 private:
  CompileOptions options_;
  mutable WorthCache cache_;
};

}  // namespace stitchwork
