// Numbers of a trial as often as its kernels and calls run, those of loops and branches included, and its
// memory-intensive kernels by what they compute.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/trial_metrics.h"

namespace stitchwork {

/// FusionStitching (arXiv 1911.11576), section 6.4: a kernel that holds a matrix product is a product; else
/// one that holds a reduction is a reduction; all others are element-wise.
enum class KernelCategory : std::uint8_t { kElementwise, kReduction, kProduct };
KernelCategory category_of(const Computation& computation, const KernelPlan& kernel);

/// dynamic_*, dram_bytes and those of each category (experiments/metrics.h). Loops count as often as they ran
/// or, where nothing runs, as their trips are known (once where they are not).
std::vector<TrialMetric> dynamic_metrics(const Model& model, const TrialResult& result);

}  // namespace stitchwork
