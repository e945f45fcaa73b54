// Who gives up shared memory where a fusion asks for too much: FusionStitching 2018, section 5.1.2.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/planners/fusionstitching/sharing.h"

namespace stitchwork::fusionstitching {

/// A fusion's shared memory, and who was refused it: readers compute these values for themselves.
struct SharedPlan {
  std::vector<Request> granted;
  std::vector<Request> shrunk;  ///< in the order in which they gave up
  Slots slots;
  bool fits = true;  ///< slots.bytes <= limit; if not, the fusion is refused (section 5.1.2, feedback)
};

struct SharingRules {
  std::int64_t limit = 0;  ///< bytes, compared after sharing
  bool reuse = true;
  bool shrink = true;
  InPlace in_place;
};

/// While the slots exceed the limit the next request gives up, by class in the order of RequestClass, within
/// a class the op of least span first (`span`, section 3.1; ties: the later op).
SharedPlan plan_shared(const Computation& computation, const Fusion& fusion, std::vector<Request> requests,
                       const std::function<int(NodeId)>& span, const SharingRules& rules);

}  // namespace stitchwork::fusionstitching
