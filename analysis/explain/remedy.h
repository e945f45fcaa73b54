// What would have to be different for a refused decision to be taken.
#pragma once

#include <string>

#include "analysis/plan/plan.h"

namespace stitchwork {

/// One sentence, with the decision's own numbers and what follows from them on the device; "" for decisions
/// that were taken and for rules that leave nothing to change.
std::string remedy(const Device& device, const Decision& decision);

}  // namespace stitchwork
