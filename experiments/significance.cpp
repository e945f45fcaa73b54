#include "experiments/significance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace stitchwork {
namespace {

constexpr std::size_t kResamples = 2000;

/// Values drawn with replacement. By hand: what std::uniform_int_distribution draws is the library's choice.
class Resampler {
 public:
  double median(const std::vector<double>& values) {
    drawn_.resize(values.size());
    for (double& x : drawn_) {
      const auto fraction = static_cast<double>(engine_() >> 11U) * 0x1p-53;  // in [0, 1)
      x = values[static_cast<std::size_t>(fraction * static_cast<double>(values.size()))];
    }
    return median_of(drawn_);
  }

 private:
  std::mt19937_64 engine_{1};  // NOLINT(cert-msc51-cpp): equal samples have equal intervals
  std::vector<double> drawn_;
};

ConfidenceInterval middle_95(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  const std::size_t tail = of.size() / 40;
  return {of[tail], of[of.size() - 1 - tail]};
}

}  // namespace

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  if (n == 0) return std::nan("");
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::optional<ConfidenceInterval> median_interval(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  Resampler resampler;
  std::vector<double> medians;
  for (std::size_t i = 0; i < kResamples; ++i) medians.push_back(resampler.median(values));
  return middle_95(std::move(medians));
}

std::optional<ConfidenceInterval> ratio_interval(const std::vector<double>& before,
                                                 const std::vector<double>& after) {
  if (std::min(before.size(), after.size()) < 2) return std::nullopt;
  if (*std::min_element(before.begin(), before.end()) <= 0) return std::nullopt;
  Resampler resampler;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < kResamples; ++i) {
    const double below = resampler.median(before);
    ratios.push_back(resampler.median(after) / below);
  }
  return middle_95(std::move(ratios));
}

double mann_whitney_p(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> all;  // value, whether of a
  for (const double x : a) all.emplace_back(x, true);
  for (const double x : b) all.emplace_back(x, false);
  std::sort(all.begin(), all.end());
  const auto n1 = static_cast<double>(a.size()), n2 = static_cast<double>(b.size()), n = n1 + n2;
  if (n1 == 0 || n2 == 0) return 1;
  double ranks = 0, ties = 0;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) ++end;
    const auto t = static_cast<double>(end - i);
    const double rank = static_cast<double>(i + 1 + end) / 2;
    for (std::size_t k = i; k < end; ++k) ranks += all[k].second ? rank : 0;
    ties += t * t * t - t;
    i = end;
  }
  const double u = ranks - n1 * (n1 + 1) / 2, mean = n1 * n2 / 2;
  const double variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 1;
  const double z = std::max(0.0, std::abs(u - mean) - 0.5) / std::sqrt(variance);
  return std::erfc(z / std::sqrt(2.0));
}

}  // namespace stitchwork
