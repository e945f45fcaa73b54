// The knobs of `fusionstitching` (docs/planners/fusionstitching.md).
#pragma once

#include "analysis/planners/fusionstitching/ilp/score.h"
#include "analysis/planners/fusionstitching/options.h"

namespace stitchwork::fusionstitching {

struct IlpOptions : Options {
  bool optimal = true;  ///< solver=ilp; else greedy
  ScoreKind score = ScoreKind::kMixed;
  LaunchCost launch;  ///< phi of F19 section 4.3
  bool exploratory = true, remainders = true, packing = true;
  std::int64_t shared_bytes = 0;  ///< of values a block may have in shared memory
};

/// "72KB would mean very low execution occupancy" (6.6), most needed was 36 KB (Table 4): the threshold of
/// section 5.3 is not given. Ours: what every device gives a block without asking.
constexpr std::int64_t kPaperSharedBytes = 49152;

/// Of resolved knobs (planner.h resolve_knobs).
IlpOptions read_ilp_options(const Graph& graph, const Device& device, const PlanOptions& options);

}  // namespace stitchwork::fusionstitching
