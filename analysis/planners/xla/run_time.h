// What XLA of today estimates that a kernel takes, by which its priority fusion decides: GpuPerformanceModel
// and GpuHloCostAnalysis (docs/planners/xla-today.md). It is no estimate of ours: analysis/judge/cost.h is.
#pragma once

#include <optional>
#include <vector>

#include "analysis/planners/xla/fusion_graph.h"
#include "occupancy_model/device.h"

namespace stitchwork::xla {

struct RunTime {
  double us = 0;           ///< without the launch
  double emitted_ops = 0;  ///< ops in its code, each as often as its code stands there
  double splits = 0;       ///< those after which nothing computed before is used again
};

/// Estimates of a graph's instructions, kept until `forget`.
class RunTimes {
 public:
  RunTimes(const FusionGraph& graph, const Device& device) : graph_(graph), device_(device) {}

  const RunTime& of(int i);
  /// Of `consumer` once `producer` is part of it.
  RunTime fused(int producer, int consumer) const;
  void forget(int i);

 private:
  RunTime estimate(const std::vector<NodeId>& ops, const std::vector<NodeId>& roots, bool tiles) const;

  const FusionGraph& graph_;
  const Device& device_;
  std::vector<std::optional<RunTime>> known_;
};

/// The dimension that varies fastest in memory comes from another one.
bool moves_minor_dimension(const Computation& computation, const Node& node);

}  // namespace stitchwork::xla
