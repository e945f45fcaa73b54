// Commands that hold a profile to a model (docs/profiles.md): profile, experiment import, view.
#pragma once

#include "cli/cli.h"
#include "experiments/profile/match.h"

namespace stitchwork {

/// The plan that a profile is held to: the one asked for; without `asked`, that of the module's own fusions
/// where XLA has made some, which its kernels are of, else the default planner's.
Planned planned_for_profile(PlanArguments arguments, bool asked, OpTrace& trace);

}  // namespace stitchwork
