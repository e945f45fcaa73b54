// What repeated samples of a number support saying.
#pragma once

#include <optional>
#include <vector>

namespace stitchwork {

/// Mean of the middle two where the number of values is even; NaN of none.
double median_of(std::vector<double> values);

struct ConfidenceInterval {
  double low = 0, high = 0;
};

/// 95 % interval of a median, and of the ratio after / before of two medians: percentile bootstrap (Efron and
/// Tibshirani, An Introduction to the Bootstrap, chapter 13), 2,000 resamples from a fixed seed. Empty with
/// fewer than two values (a side), which resampling says nothing about, and of a ratio where a value before
/// is not positive.
std::optional<ConfidenceInterval> median_interval(const std::vector<double>& values);
std::optional<ConfidenceInterval> ratio_interval(const std::vector<double>& before,
                                                 const std::vector<double>& after);

/// Two-sided p of the Mann-Whitney U test (normal approximation, ties corrected).
double mann_whitney_p(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace stitchwork
