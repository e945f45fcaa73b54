#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "analysis/judge/cost_access.h"

namespace stitchwork::costs {
namespace {

/// By how much `expr` grows from one lane to the next, quotients and remainders taken for what they are on
/// the average and between two jumps.
double slope(const IndexExpr& expr, int lane) {
  double sum = 0;
  for (const IndexTerm& term : expr.terms) {
    const auto coefficient = static_cast<double>(term.coefficient);
    if (term.kind == AtomKind::kDim) sum += term.id == lane ? coefficient : 0;
    if (term.kind == AtomKind::kMod) sum += coefficient * slope(*term.inner, lane);
    if (term.kind == AtomKind::kFloorDiv)
      sum += coefficient * slope(*term.inner, lane) / static_cast<double>(term.divisor);
  }
  return sum;
}

/// Lanes after which remainders begin anew; 0: there are none.
std::int64_t period(const IndexExpr& expr, int lane) {
  std::int64_t common = 0;
  for (const IndexTerm& term : expr.terms) {
    if (!term.inner) continue;
    const double inner = std::abs(slope(*term.inner, lane));
    if (term.kind == AtomKind::kMod && inner > 0)
      common = std::gcd(common, std::llround(static_cast<double>(term.divisor) / inner));
    common = std::gcd(common, period(*term.inner, lane));
  }
  return common;
}

}  // namespace

double divergence(const IndexMap& map, const Layout& layout) {
  const int lane = layout.lane_dim;
  const std::int64_t lanes = lane == 1 ? std::clamp<std::int64_t>(layout.threads_a_row, 1, kWarp) : kWarp;
  const std::int64_t together = lanes * layout.width;
  double factor = 1, most = 1;
  for (const Constraint& c : map.constraints) {
    const double per_lane = std::abs(slope(c.expr, lane));
    const Interval all = range_without(c, map);
    const Interval inside{std::max(all.lo, c.range.lo), std::min(all.hi, c.range.hi)};
    if (per_lane == 0 || inside.empty() || inside.size() == all.size()) continue;
    const auto in_lanes = [&](std::int64_t extent) {
      return std::llround(static_cast<double>(extent) / per_lane);
    };
    const std::int64_t run = std::max<std::int64_t>(1, in_lanes(inside.size()));
    // Runs begin a period apart: so far behind the first lane of a range.
    const std::int64_t apart = std::gcd(together, period(c.expr, lane)), first = in_lanes(inside.lo - all.lo);
    std::int64_t met = 0;
    for (std::int64_t behind = first % apart; behind < together; behind += apart)
      met += (behind + run - 1) / together + 1;
    factor = std::max(factor, static_cast<double>(met * apart) / static_cast<double>(run));
    most *= static_cast<double>(all.size()) / static_cast<double>(inside.size());
  }
  return std::min(factor, most);
}

}  // namespace stitchwork::costs
