// Which planner's plan is fastest, and what of its time makes it so.
#pragma once

#include "experiments/reproduce_values.h"

namespace stitchwork {

/// Of the variants of one workload on the context's device, by total_us. Nothing where a variant has no such
/// number.
std::optional<BestVariant> best_of(const ValueContext& context, const std::string& workload);

/// The averages of tables, each as a row called as its device, and in notes how often each variant was best
/// there, and by which part of the time.
void summarise(const std::vector<const ReproducedTable*>& tables, ReproducedTable& summary);

}  // namespace stitchwork
