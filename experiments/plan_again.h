// The plan of a trial that a store holds, made again: stores have numbers and kernels, not plans.
#pragma once

#include "experiments/model.h"
#include "experiments/report_data.h"

namespace stitchwork {

/// Plans `model` as the trial did, with decisions. Throws Error saying why it cannot: a setting names a file
/// that the store does not have, or what comes out is not what ran (another version of the program, or
/// registers that did not suffice).
FusionPlan plan_again(const Model& model, const ReportSection& section, const ReportTrial& trial);

/// What stores call a kernel: "k3 reduce_72".
std::string kernel_title(const KernelPlan& kernel);

}  // namespace stitchwork
