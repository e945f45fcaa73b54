// What an experiment has found: its numbers, trial by trial, and comparisons of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/significance.h"
#include "experiments/store.h"

namespace stitchwork {

/// The values of one metric over the ok attempts of a trial; of a counter, its sum over the kernels.
struct Series {
  std::string method;  ///< "modelled", "sampled", "simulated", "measured" or "imported"
  std::vector<double> values;
  double median() const;
};

struct TrialResults {
  std::string workload, device, variant;
  std::int64_t seed = 0;
  std::string status, reason;            ///< of the last attempt
  std::map<std::string, Series> series;  ///< by metric; none where no attempt was ok
  /// Empty where the metric has no value.
  std::optional<double> median(const std::string& metric) const;
};

struct ExperimentResults {
  std::string name;
  std::vector<TrialResults> trials;   ///< as first recorded
  std::vector<std::string> variants;  ///< likewise
};

/// Throws Error naming the store's experiments if there is none of that name.
ExperimentResults read_results(const Store& store, const std::string& experiment);

/// A kernel of a trial's last ok attempt.
struct KernelResult {
  std::string name;
  double time_us = 0;
  std::string grid, block;  ///< as "[80,1,1]"
  std::int64_t grid_barriers = 0;
  std::map<std::string, Series> counters;  ///< one value each
};
/// Longest first; empty where no attempt was ok.
std::vector<KernelResult> read_kernels(const Store& store, const std::string& experiment,
                                       const std::string& workload, const std::string& variant);

/// The experiments of a store, as first recorded.
struct ExperimentEntry {
  std::string name;
  std::int64_t trials = 0, ok = 0, failed = 0;  ///< by their last attempt
  std::int64_t last_ns = 0;
};
std::vector<ExperimentEntry> list_experiments(const Store& store);

/// How much better than `base` each variant is on a workload: base / variant of a metric of which less is
/// better, variant / base of one of which more is.
struct Ablation {
  std::string metric, base;
  std::vector<std::string> methods;   ///< that the numbers were obtained by
  std::vector<std::string> variants;  ///< the base first
  struct Row {
    std::string workload, device;
    std::int64_t seed = 0;
    std::vector<std::optional<double>> ratios;  ///< by variant
  };
  std::vector<Row> rows;
  std::vector<std::optional<double>> geometric_means;  ///< by variant, over the rows that have all variants
};
/// Throws Error naming the variants if `base` is none of them.
Ablation ablate(const ExperimentResults& results, const std::string& base, const std::string& metric);

/// A metric of the same trial in two experiments.
struct Change {
  std::string workload, device, variant;
  std::int64_t seed = 0;
  std::optional<Series> before, after;         ///< empty: the trial is not there, or has no ok attempt
  std::optional<double> ratio;                 ///< after / before of the medians
  std::optional<ConfidenceInterval> interval;  ///< of the ratio (ratio_interval)
  std::optional<double> p;                     ///< mann_whitney_p; empty with fewer than two values a side
  /// '+' better and '-' worse by more than the factor, '~' within it; '?' where measured samples are fewer
  /// than 9 a side, or their difference is not significant.
  char mark = '?';
};
/// `factor`: 1.05; `alpha`: of a two-sided Mann-Whitney U test over measured samples. Throws Error where
/// methods differ between the two and `mixed` is false.
std::vector<Change> compare_results(const ExperimentResults& before, const ExperimentResults& after,
                                    const std::string& metric, double factor, double alpha, bool mixed);

}  // namespace stitchwork
