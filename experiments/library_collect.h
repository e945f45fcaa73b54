// Fills a performance library: FusionStitching 2018, section 4.4, "a CUDA kernel is built from the key, run,
// measured and inserted".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/planners/planner.h"
#include "codegen/executable.h"
#include "experiments/model.h"

namespace stitchwork {

struct CollectOptions {
  std::string planner = "fusionstitching-2018";
  PlanOptions plan;             ///< its `library` is not heeded
  std::string backend = "sim";  ///< or "cuda"
  bool sampled = false;         ///< sim: RunOptions::sampled
  int repeats = 20;             ///< cuda: of every kernel
  CompileOptions compile;
  bool mixed = false;  ///< also where the library has times of another method
  /// (keys done and keys known to be missing in this round, what is happening).
  std::function<void(std::size_t, std::size_t, const std::string&)> progress;
};

struct Collected {
  int rounds = 0;           ///< of planning
  std::size_t built = 0;    ///< kernels built, run and inserted
  std::size_t keys = 0;     ///< in the library at the end
  std::size_t missing = 0;  ///< keys that the last planning still asked for in vain
  std::string compiler;     ///< of the kernels built; "" if there were none
  std::string method;       ///< of their times
  std::string sha256;       ///< of the library's file at the end; "" where nothing needed one
};

/// Plans the models with what the library at `path` has, builds and runs the one-op kernels that are missing,
/// each inserted by a transaction of its own, and plans again until nothing is missing, at most five times. A
/// kill at any moment loses at most the key under way, and what is there is not built again. The file is made
/// at the first insertion.
/// Throws Error for a planner that takes no library, a library of another device, one with times of another
/// method than the backend's (unless `mixed`), an unknown backend, and where a kernel cannot be compiled or
/// run.
Collected collect_library(const std::vector<Model>& models, const Device& device, const std::string& path,
                          const CollectOptions& options);

}  // namespace stitchwork
