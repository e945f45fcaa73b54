// What a report shows, read from a store in one pass: the latest finished attempt of every trial, grouped by
// model and device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/store.h"

namespace stitchwork {

/// A number and how it was obtained ("modelled", "sampled", "simulated",
/// "measured", "imported").
struct ReportValue {
  double value = 0;
  std::string method;
};

struct ReportKernel {
  std::string name;
  std::vector<std::pair<std::string, std::string>> ops;  ///< (op, scheme), topological
  std::int64_t grid = 1, block = 1, barriers = 0;
  std::int64_t shared_bytes = 0, registers = 0;
  std::optional<std::int64_t> spill_bytes;
  ReportValue time_us;
  std::map<std::string, ReportValue> counters;
};

struct ReportTrial {
  std::int64_t id = 0;
  std::string experiment, planner, options, backend, cache;
  std::int64_t seed = 0;
  bool edited_plan = false;
  std::string label;  ///< the planner, and what tells it from the section's other trials
  bool ok = false;
  std::string reason;  ///< of a failure
  std::int64_t attempt = 1;
  std::map<std::string, ReportValue> samples;  ///< medians, by metric
  std::vector<ReportKernel> kernels;           ///< in plan order

  const ReportValue* sample(const std::string& metric) const;
  /// Sum of a counter over the kernels; empty if no kernel has it.
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

/// The environments that attempts of the store ran in, a line each.
std::vector<std::string> environments(const Store& store);

/// `experiment` "" = all. Throws Error naming the store's experiments if there is none of that name.
ReportData read_report(const Store& store, const std::string& experiment);

}  // namespace stitchwork
