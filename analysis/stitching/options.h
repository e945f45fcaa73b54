// The planner's knobs (docs/planners/astitch.md).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/judge/judge.h"
#include "analysis/plan/constraints.h"
#include "analysis/plan/options.h"

namespace stitchwork::astitch {

class KnownKernels;  // analysis/forms/alike.h

struct Options {
  bool adaptive_mapping = true;
  bool dominant_merging = true;
  bool proactive_locality = true;
  bool shared_reuse = true;
  bool register_relaxation = true;
  bool remote_stitching = true;
  bool exhaustive_stitching = true;  ///< off: the kernels are XLA's fusions
  bool data_reuse = true;            ///< off: values travel between groups through global memory only
  bool across_rows = true;           ///< off: column reductions never join row loops (across.h)
  bool residence = true;             ///< off: no value stays with its threads over a barrier (residence.h)
  bool tiles = true;                 ///< off: no value goes through tiles of shared memory (transposes.h)
  bool async_copies = true;          ///< off: staged rows go through registers, a task after the other
  bool bulk_copies = true;           ///< async_copies=cp_async: not by bulk copies
  bool one_pass = true;              ///< off: every reduction of a row passes over it (one_pass.h)
  bool clusters = true;              ///< off: no row is shared by the blocks of a cluster (clusters.h)
  bool wide_vectors = true;          ///< off: 16 bytes move at a time at most, on every device
  bool scalars_stored = true;        ///< off: scalars are computed where they are read, but for reductions
  bool recompute = true;             ///< off: every kernel reads what others have (planners/auto/recompute.h)
  bool epilogues = true;  ///< off: library calls compute products alone (planners/auto/epilogues.h)
  bool products = true;   ///< off: every product is a library call (planners/auto/products.h)
  bool tuned = false;     ///< mapping=tuned
  bool record_decisions = false;
  /// PlanOptions::decisions_about, ascending.
  std::optional<std::vector<NodeId>> decisions_about;
  const PlanJudge* judge = &modelled_judge();  ///< of forms; never null
  Constraints constraints;                     ///< what overrides ask for
  /// Of what limits have cut off and that has been planned, of parts of the same stitch op; null: nothing is
  /// looked up. Outlives the search.
  KnownKernels* known = nullptr;
  // Limits of a kernel (docs/planners/astitch.md): assembling one grows faster than linearly with its code.
  // Ops and groups that share code (equal_ops.h) count once.
  int max_ops = 512, max_groups = 48, max_phases = 8;
  /// Levels, in steps, that stitch ops of one kernel may lie apart if no path joins them.
  int max_level_distance = 4;
};

/// Throws Error naming the known knobs and values. Without what names ops.
Options read_options(const PlanOptions& options);
/// With what names ops of the graph.
Options read_options(const Graph& graph, const Device& device, const PlanOptions& options);

/// Whether every part has decisions of its own, so that none is planned once for several.
bool records_all(const Options& options);
/// Whether decisions about a part that holds these ops (ascending) are to be recorded.
bool records(const Options& options, std::span<const NodeId> ops);
/// The same with nothing recorded.
Options silent(const Options& options);

}  // namespace stitchwork::astitch
