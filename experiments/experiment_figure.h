// An experiment's numbers as a figure.
#pragma once

#include <string>

#include "experiments/results.h"
#include "figures/data/figure.h"

namespace stitchwork {

/// Bars of a metric: rows (row_names) by variant, medians with their
/// intervals (median_interval) where there are several attempts. Throws Error where no trial has the metric.
Figure experiment_figure(const ExperimentResults& results, const std::string& metric);

/// The slot of the palette of a planner's usual names, so that it looks alike in all figures; -1 for others.
int planner_style(const std::string& variant);

}  // namespace stitchwork
