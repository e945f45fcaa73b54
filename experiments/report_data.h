// What a report and the workbench show of a store: its trials (experiments/results.h), grouped by model and
// device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/environment.h"
#include "experiments/results.h"

namespace stitchwork {

using ReportValue = ResultValue;
using ReportKernel = KernelResult;

struct ReportTrial {
  std::int64_t id = 0;
  std::string key, experiment, planner, options, backend;
  std::int64_t seed = 0;
  Settings settings;
  std::string label;         ///< the variant, and what tells it from the section's other trials
  bool ok = false;           ///< its last attempt
  std::string reason;        ///< of a failure
  std::int64_t attempt = 1;  ///< so many there were
  std::map<std::string, ReportValue> samples;  ///< medians over the ok attempts, by metric
  std::map<std::string, ReportValue> totals;   ///< likewise sums of counters over the kernels
  std::vector<ReportKernel> kernels;  ///< of the last ok attempt, in plan order: all, or the slowest of them
  std::size_t kernel_count = 0;       ///< of that attempt, and the sum of their times
  double kernels_us = 0;

  const ReportValue* sample(const std::string& metric) const;
  /// Empty where the kernels do not have the counter by one method.
  std::optional<ReportValue> total(const std::string& counter) const;
};

struct ReportSection {
  std::string workload, device, model_sha256;
  std::vector<ReportTrial> trials;  ///< in the order of the planner table, then as first recorded
};

struct ReportData {
  std::vector<ReportSection> sections;  ///< by workload, then device
  std::vector<std::string> environments;
  std::vector<std::string> experiments;
  std::int64_t first_ns = 0, last_ns = 0;  ///< of the attempts shown
};

/// Kernels of a trial that a page for people lists if nothing else is asked for: those of stores of some runs
/// all, of a sweep's thousand trials the slowest few. A choice, not measured: some 2,000 rows are a page that
/// browsers show at once.
std::size_t usual_kernels(std::size_t trials);

/// `experiment` "" = all. `kernels`: so many are kept of each trial, the slowest; 0: all; nothing: as
/// usual_kernels has it. Throws Error naming the store's experiments if there is none of that name.
ReportData read_report(const Store& store, const std::string& experiment,
                       std::optional<std::size_t> kernels = 0);

}  // namespace stitchwork
