// A plan's steps as rows: what the kernel list, the boxes of the graph and the timeline show of each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan.h"

namespace stitchwork::gui {

struct StepRow {
  int step = 0;     ///< index into FusionPlan::steps
  int kernel = -1;  ///< index into FusionPlan::kernels
  StepKind kind = StepKind::kKernel;
  std::string id, name;  ///< "k3", "multiply_1"; "lib:dot.5", "dot"
  double predicted_us = 0;
  double share = 0;  ///< of the time of all steps, within [0, 1]
  int ops = 0, groups = 0;
  std::array<int, 6> schemes{};  ///< ops by Scheme
  std::int64_t grid = 0, shared_bytes = 0, scratch_bytes = 0;
  int block = 0, barriers = 0, register_bound = 0, blocks_per_sm = 0;
  std::int64_t dram_bytes = 0;  ///< modelled, read and written; of kernels

  /// The scheme that reaches furthest: what a folded kernel is coloured by.
  std::optional<Scheme> scheme() const;
};

std::vector<StepRow> step_rows(const Graph& graph, const Device& device, const FusionPlan& plan);

/// One letter a scheme, as badges have it: I, L, R, S (resident), G, C (recomputed).
char badge(Scheme scheme);
/// What the scheme means, in a sentence.
std::string_view meaning(Scheme scheme);

}  // namespace stitchwork::gui
