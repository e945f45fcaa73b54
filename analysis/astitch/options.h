// The planner's knobs (docs/planners/astitch.md).
#pragma once

#include "analysis/constraints.h"
#include "analysis/planner.h"

namespace stitchwork::astitch {

struct Options {
  bool adaptive_mapping = true;
  bool dominant_merging = true;
  bool proactive_locality = true;
  bool shared_reuse = true;
  bool register_relaxation = true;
  bool remote_stitching = true;
  bool exhaustive_stitching = true;  ///< off: the kernels are XLA's fusions
  bool data_reuse = true;            ///< off: values travel between groups through global memory only
  bool tuned = false;                ///< mapping=tuned
  bool record_decisions = false;
  Constraints constraints;  ///< what overrides ask for
  // Limits of a kernel (docs/planners/astitch.md): assembling one grows faster than linearly with its size.
  int max_ops = 512, max_groups = 48, max_phases = 8;
};

/// Throws Error naming the known knobs and values.
Options read_options(const PlanOptions& options);

std::span<const std::string_view> knob_names();

}  // namespace stitchwork::astitch
