// What XLA of today estimates that a kernel takes, by which its priority fusion decides: GpuPerformanceModel
// and GpuHloCostAnalysis (docs/planners/xla-today.md). It is no estimate of ours: analysis/judge/cost.h is.
#pragma once

#include <optional>
#include <vector>

#include "analysis/planners/xla/fusion_graph.h"
#include "analysis/planners/xla/kernel_work.h"
#include "occupancy_model/device.h"

namespace stitchwork::xla {

struct RunTime {
  double us = 0;           ///< without the launch
  double emitted_ops = 0;  ///< ops in its code, each as often as its code stands there
  double splits = 0;       ///< those after which nothing computed before is used again
};

/// Estimates of a graph's instructions, kept while they are fused.
class RunTimes {
 public:
  RunTimes(const FusionGraph& graph, const Device& device)
      : graph_(graph),
        device_(device),
        counter_(graph.computation()),
        known_(static_cast<std::size_t>(graph.size())) {}

  const RunTime& of(int i);
  const KernelWork& work(int i);
  /// Of `consumer` once `producer` is part of it.
  RunTime fused(int producer, int consumer);
  /// To be called before the graph fuses them.
  void fuse(int producer, int consumer);

 private:
  struct Known {
    std::optional<KernelWork> work;
    std::optional<RunTime> time;
  };

  Known& known(int i) { return known_[static_cast<std::size_t>(i)]; }
  KernelWork fused_work(int producer, int consumer);

  const FusionGraph& graph_;
  const Device& device_;
  WorkCounter counter_;
  std::vector<Known> known_;
};

}  // namespace stitchwork::xla
