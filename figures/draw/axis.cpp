#include "figures/draw/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stitchwork {
namespace {

/// 1, 2 or 5 times a power of ten, at least `raw`.
double nice_step(double raw) {
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

void linear_ticks(Scale& scale, bool low_fixed, bool high_fixed, int wanted) {
  const double step = nice_step(std::max(scale.high - scale.low, 1e-300) / wanted);
  if (!low_fixed) scale.low = std::floor(scale.low / step + 1e-9) * step;
  if (!high_fixed) scale.high = std::ceil(scale.high / step - 1e-9) * step;
  for (double k = std::ceil(scale.low / step - 1e-9); k * step <= scale.high + 1e-9 * step; k += 1)
    scale.ticks.push_back(k * step);
}

void log_ticks(Scale& scale, bool low_fixed, bool high_fixed) {
  if (!low_fixed) scale.low = std::pow(10, std::floor(std::log10(scale.low) + 1e-9));
  if (!high_fixed) scale.high = std::pow(10, std::ceil(std::log10(scale.high) - 1e-9));
  if (scale.high <= scale.low) scale.high = 10 * scale.low;
  const double decades = std::log10(scale.high / scale.low);
  constexpr double kManyDecades = 7, kFewDecades = 1.5;
  const int stride = decades > kManyDecades ? 2 : 1;
  for (double e = std::floor(std::log10(scale.low) + 1e-9); e <= std::log10(scale.high) + 1e-9; e += 1) {
    for (const double factor : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0}) {
      const double value = factor * std::pow(10, e);
      if (value < scale.low * (1 - 1e-9) || value > scale.high * (1 + 1e-9)) continue;
      const bool labelled = factor == 1 ? static_cast<long>(e) % stride == 0
                                        : decades < kFewDecades && (factor == 2 || factor == 5);
      (labelled ? scale.ticks : scale.minor).push_back(value);
    }
  }
}

}  // namespace

double Scale::position(double value) const {
  if (logarithmic) return std::log(std::max(value, low) / low) / std::log(high / low);
  return (value - low) / (high - low);
}

Scale scale_of(const FigureAxis& axis, double low, double high, bool from_zero, int wanted_ticks) {
  Scale scale;
  scale.logarithmic = axis.logarithmic;
  if (!(low <= high)) low = axis.logarithmic ? 1 : 0, high = axis.logarithmic ? 10 : 1;  // no values at all
  if (from_zero && !axis.logarithmic) low = std::min(low, 0.0), high = std::max(high, 0.0);
  if (axis.logarithmic) {  // what is not positive has no place
    if (!(high > 0)) high = 10;
    if (!(low > 0)) low = high / 1000;
  }
  const auto usable = [&](const std::optional<double>& limit) {
    return limit && (!axis.logarithmic || *limit > 0);
  };
  scale.low = usable(axis.low) ? *axis.low : low;
  scale.high = usable(axis.high) ? *axis.high : high;
  if (!(scale.high > scale.low)) scale.high = scale.low + (scale.low == 0 ? 1 : std::abs(scale.low));
  if (axis.logarithmic)
    log_ticks(scale, usable(axis.low), usable(axis.high));
  else
    linear_ticks(scale, axis.low.has_value(), axis.high.has_value(), wanted_ticks);
  return scale;
}

std::string tick_text(double value, double step) {
  constexpr double kLarge = 10000;
  const double magnitude = std::abs(value);
  if (magnitude < step * 1e-6) return "0";
  for (const auto& [unit, suffix] : {std::pair{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (magnitude >= unit && (magnitude >= kLarge || unit > 1e3))
      return fmt::format("{:.4g}{}", value / unit, suffix);
  if (magnitude >= 1000)
    return fmt::format("{:.0f},{:03.0f}", std::floor(value / 1000), std::fmod(magnitude, 1000));
  if (step < 1) {
    const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 8);
    return fmt::format("{:.{}f}", value, digits);
  }
  return fmt::format("{:.6g}", value);
}

}  // namespace stitchwork
