// The one reader of the store: trials with their numbers and kernels. Tables, comparisons, reports, figures
// and the workbench are made from what it gives; the SQL views of experiments/schema.cpp mean the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/settings.h"
#include "experiments/significance.h"
#include "experiments/store.h"

namespace stitchwork {

/// The values of one metric over the ok attempts of one trial, obtained by one method from one source; of a
/// counter, its sum over the kernels. Nothing else is ever put together.
struct Series {
  std::string method;  ///< "simulated", "simulated + modelled" (a sum of both), ...
  /// What the numbers are of, beside the trial's settings: the compiler of simulated kernels; the GPU with
  /// its driver; the host of host times; "" of modelled numbers.
  std::string source;
  std::vector<double> values;
  double median() const;
};

/// A trial: its key is its identity, so that trials that differ in any setting are different ones.
struct TrialResults {
  std::int64_t id = 0;
  std::string key, experiment, workload, device, variant;
  std::int64_t seed = 0;
  Settings settings;
  std::string status, reason;              ///< of the last attempt
  std::int64_t attempts = 0;               ///< so many there were
  std::int64_t first_ns = 0, last_ns = 0;  ///< start of the first attempt, end of the last; since 1970, UTC
  std::set<std::int64_t> environments;     ///< ids
  std::vector<std::int64_t> ok_attempts;   ///< ids, oldest first
  std::map<std::string, std::vector<Series>> series;  ///< by metric; none where no attempt was ok

  /// The series by the method that is closest to the hardware, of the latest source; null where there is
  /// none.
  const Series* find(const std::string& metric) const;
  /// Its median; empty where the metric has no value.
  std::optional<double> median(const std::string& metric) const;
  /// "" where the trial has no such setting.
  const std::string& setting(const std::string& name) const;
};

struct ExperimentResults {
  std::string name;
  std::vector<TrialResults> trials;   ///< as first recorded
  std::vector<std::string> variants;  ///< likewise
};

/// Names of all experiments, as first recorded.
std::vector<std::string> experiment_names(const Store& store);

/// `experiment` "": all of them, in one list. Throws Error naming the store's experiments if there is none of
/// that name.
ExperimentResults read_results(const Store& store, const std::string& experiment);
/// The same without numbers: who is there, and what became of it.
std::vector<TrialResults> read_trials(const Store& store, const std::string& experiment);

/// How close to the hardware a method is, 0: modelled; of a sum, its closest part.
int strength(const std::string& method);

/// The method of what is computed from numbers by `methods`: "sampled + modelled", closest to the hardware
/// first.
std::string made_of(const std::set<std::string>& methods);

struct ResultValue {
  double value = 0;
  std::string method;
};

/// A kernel of a trial's last ok attempt.
struct KernelResult {
  std::string name;
  std::vector<std::pair<std::string, std::string>> ops;  ///< (op, scheme), topological
  std::int64_t grid = 1, block = 1, barriers = 0;
  std::int64_t shared_bytes = 0, registers = 0;
  std::optional<std::int64_t> spill_bytes;
  ResultValue time_us;
  std::map<std::string, ResultValue> counters;
};
/// In plan order; empty where no attempt was ok.
std::vector<KernelResult> read_kernels(const Store& store, const TrialResults& trial);
std::vector<KernelResult> longest_first(std::vector<KernelResult> kernels);

/// Settings in which trials of one workload and variant differ: what the rows of a table have to name.
std::set<std::string> differing_settings(const std::vector<TrialResults>& trials);
/// The row of a table, with variants as columns, that each trial belongs into: its workload and what
/// differing_settings names. No two trials of one variant have one row.
std::vector<std::string> row_names(const std::vector<TrialResults>& trials);

/// The experiments of a store, as first recorded.
struct ExperimentEntry {
  std::string name;
  std::int64_t trials = 0, ok = 0, failed = 0;  ///< by their last attempt
  std::int64_t last_ns = 0;
};
std::vector<ExperimentEntry> list_experiments(const Store& store);

}  // namespace stitchwork
