// A run as a timeline that trace viewers open (ui.perfetto.dev, chrome://tracing).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "experiments/trial.h"

namespace stitchwork {

/// The Trace Event Format's JSON object: a slice for every step in order, each as long as it took, with the
/// device's launch gap between them; times in us. A slice's category is what the step is (kernel, library,
/// copy, memset, control); its arguments say how its time was obtained and, for kernels, the launch and the
/// counters.
nlohmann::ordered_json trace_json(const Model& model, const TrialSpec& spec, const TrialResult& result);

}  // namespace stitchwork
