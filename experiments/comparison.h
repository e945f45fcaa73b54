// Trials compared: variants of one experiment, and the same trials in two.
#pragma once

#include "experiments/results.h"

namespace stitchwork {

/// How much better than `base` each variant is on a row (row_names): base / variant of a metric of which less
/// is better, variant / base of one of which more is.
struct Ablation {
  std::string metric, base;
  std::vector<std::string> methods;   ///< that the numbers were obtained by
  std::vector<std::string> variants;  ///< the base first
  struct Row {
    std::string name, workload, device;
    std::int64_t seed = 0;
    std::vector<std::optional<double>> ratios;  ///< by variant
  };
  std::vector<Row> rows;
  std::vector<std::optional<double>> geometric_means;  ///< by variant, over the rows that have all variants
};
/// Throws Error naming the variants if `base` is none of them.
Ablation ablate(const ExperimentResults& results, const std::string& base, const std::string& metric);

/// A metric of the same trial in two experiments: of one workload, variant, device and seed, and alike in
/// what tells trials of these apart on either side (differing_settings).
struct Change {
  std::string name;  ///< workload and what it takes to tell the trial from others
  std::string workload, device, variant;
  std::int64_t seed = 0;
  std::optional<Series> before, after;         ///< empty: the trial is not there, or has no ok attempt
  std::string differences;                     ///< settings that differ between them: "backend sim -> cuda"
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
