// AStitch's passes record what they decide.
#pragma once

#include "analysis/plan/recorder.h"

namespace stitchwork::astitch {
using stitchwork::Recorder;
}  // namespace stitchwork::astitch
