// The kernels of one trial, as a table of the report.
#pragma once

#include <string>

#include "experiments/report.h"
#include "experiments/report_data.h"

namespace stitchwork {

/// What the scheme badges mean.
std::string scheme_legend();

/// "The 5 slowest of 120 kernels, 83 % of their time; --kernels N lists more"; "" where all are listed.
std::string left_out(const ReportTrial& trial);

/// Slowest first: ops with scheme badges, launch, registers, spills, counters, share of the kernels' time.
/// `page`: names lead there; nullptr: nowhere.
std::string kernel_table(const ReportTrial& trial, const ReportPage* page);

/// The trial's kernels in the order that reports show them.
std::vector<const ReportKernel*> slowest_first(const ReportTrial& trial);

/// 0.1 us steps below a thousand, whole microseconds above.
std::string microseconds(double us);

}  // namespace stitchwork
