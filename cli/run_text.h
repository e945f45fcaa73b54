// What `stitchwork run` prints.
#pragma once

#include <string>

#include "experiments/trial.h"

namespace stitchwork {

/// "check: ok (max abs error ...)", or why not.
std::string check_text(const CheckResult& check);

/// A row a kernel and other step: how it was launched, and its time; the rows add up to the run's.
std::string kernels_text(const Model& model, const TrialResult& result, bool simulated);

/// A row a kernel: what was counted, by the simulator or, `profiled`, by a GPU.
std::string counters_text(const Model& model, const TrialResult& result, bool profiled);

/// Of the whole program on a GPU.
std::string repeated_text(const RunResult& run);

/// "library: dot.1 and 3 more by cuBLAS", a line for each way; nothing where there are no calls.
std::string library_text(const RunResult& run);

}  // namespace stitchwork
