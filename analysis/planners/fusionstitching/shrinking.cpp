#include "analysis/planners/fusionstitching/shrinking.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stitchwork::fusionstitching {

SharedPlan plan_shared(const Computation& computation, const Fusion& fusion, std::vector<Request> requests,
                       const std::function<int(NodeId)>& span, const SharingRules& rules) {
  SharedPlan plan;
  plan.granted = std::move(requests);
  LeastBytes least(computation, fusion, plan.granted);
  const auto order = [&](const Request& r) { return std::tuple(r.cls, span(r.op), -r.op); };
  for (;;) {
    const auto next =
        std::min_element(plan.granted.begin(), plan.granted.end(),
                         [&](const Request& a, const Request& b) { return order(a) < order(b); });
    const bool last = !rules.shrink || next == plan.granted.end() || next->cls == RequestClass::kMust;
    if (last || least.bytes() <= rules.limit) {
      plan.slots = share(computation, fusion, plan.granted, rules.in_place, rules.reuse);
      plan.fits = plan.slots.bytes <= rules.limit;
      if (plan.fits || last) return plan;
    }
    least.take_back(*next);
    plan.shrunk.push_back(*next);
    plan.granted.erase(next);
  }
}

}  // namespace stitchwork::fusionstitching
