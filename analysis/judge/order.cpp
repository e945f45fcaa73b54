#include "analysis/judge/order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/base/error.h"

namespace stitchwork {

std::int64_t Order::bucket(double x) const {
  SW_CHECK(resolution > 0, "an order needs a resolution");
  SW_CHECK(!std::isnan(x), "no time and no number of sectors");
  if (x <= 1) return 0;
  if (std::isinf(x)) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::floor(std::log(x) / std::log1p(resolution)));
}

bool Order::before(const Worth& a, const Worth& b) const {
  const auto key = [this](const Worth& w) {
    return std::tuple(bucket(w.us), bucket(w.dram_sectors), bucket(w.l2_sectors), w.simple, w.us);
  };
  return key(a) < key(b);
}

std::size_t Order::best(std::span<const Worth> forms) const {
  SW_CHECK(!forms.empty(), "no form to choose");
  const auto found = std::min_element(forms.begin(), forms.end(),
                                      [this](const Worth& a, const Worth& b) { return before(a, b); });
  return static_cast<std::size_t>(found - forms.begin());
}

}  // namespace stitchwork
