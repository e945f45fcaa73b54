// Where ticks stand and what they say.
#pragma once

#include <string>
#include <vector>

#include "figures/data/figure.h"

namespace stitchwork {

/// The range an axis shows and its ticks.
struct Scale {
  bool logarithmic = false;
  double low = 0, high = 1;
  std::vector<double> ticks, minor;

  /// 0 at the low end, 1 at the high one.
  double position(double value) const;
};

/// For values from `low` to `high`; the axis' own limits win. `from_zero`: bars.
Scale scale_of(const FigureAxis& axis, double low, double high, bool from_zero, int wanted_ticks);

/// "0.25", "1,500", "20k": as long as it has to be, next to others `step` apart.
std::string tick_text(double value, double step);

}  // namespace stitchwork
