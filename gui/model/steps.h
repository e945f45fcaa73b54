// A plan's steps as rows: what the kernel list, the boxes of the graph and the timeline show of each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan/plan.h"
#include "occupancy_model/timing.h"

namespace stitchwork::gui {

struct StepRow {
  int step = 0;     ///< as first_step (gui/layout/fold_tree.h) numbers them
  int body = -1;    ///< index into FusionPlan::computations of what it is a step of; -1: the entry
  int kernel = -1;  ///< index into FusionPlan::kernels of its plan
  StepKind kind = StepKind::kKernel;
  std::string id, name;     ///< "k3", "multiply_1"; "lib:dot.5", "dot"
  std::string within;       ///< the computation that it is a step of; empty: the entry
  double predicted_us = 0;  ///< of one run
  double runs = 1;   ///< in loops times the trips, once where they are unknown; of branches as if each ran
  double share = 0;  ///< of the time of the entry's steps, within [0, 1]: loops contain their kernels
  int ops = 0, groups = 0;
  std::array<int, 6> schemes{};  ///< ops by Scheme
  std::int64_t grid = 0, shared_bytes = 0, scratch_bytes = 0;
  int block = 0, barriers = 0, register_bound = 0, blocks_per_sm = 0;
  std::int64_t dram_bytes = 0;  ///< modelled, read and written; of kernels
  KernelTime time;              ///< of kernels, modelled

  /// The scheme that reaches furthest: what a folded kernel is coloured by.
  std::optional<Scheme> scheme() const;
};

/// A row a step of the plan, and of what its loops and branches run.
std::vector<StepRow> step_rows(const Graph& graph, const Device& device, const FusionPlan& plan);

/// One letter a scheme, as badges have it: I, L, R, S (resident), G, C (recomputed).
char badge(Scheme scheme);
/// What the scheme means, in a sentence.
std::string_view meaning(Scheme scheme);

}  // namespace stitchwork::gui
