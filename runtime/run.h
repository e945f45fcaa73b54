// Running an executable: buffers, order, library calls, outputs, counters and times per step.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/executable.h"
#include "codegen/gemm/tiled_product.h"
#include "core/evaluate/inputs.h"
#include "runtime/backend.h"

namespace stitchwork {

struct KernelRun {
  sim::Counters counters;  ///< of its first launch; all zero where the method is not simulated
  std::int64_t launches = 0;
  int registers = 0;
  std::optional<std::int64_t> spill_bytes;
  double time_us = 0;                     ///< of all launches
  KernelTime parts;                       ///< of the first launch's time: simulated, or of the model
  std::vector<NotModelled> not_modelled;  ///< what they leave out; empty of measured times
  double bytes_in_flight = 0;             ///< an SM, of its first launch (simulator/simulator.h)
  Method method = Method::kSimulated;
  std::vector<sim::LineCounters> lines;  ///< of its PTX, of its first launch; none unless asked for
  std::vector<std::pair<std::string, double>> profiled;  ///< measured counters of its first launch
};

/// A computation that loops and branches ran.
struct ComputationRun {
  std::int64_t runs = 0;
  std::vector<KernelRun> kernels;  ///< by index of its plan's kernels
};

/// What a step of the plan took: a library call that the CPU reference made is modelled, a loop or branch is
/// all that ran in it.
struct StepRun {
  double time_us = 0;
  Method method = Method::kModelled;
};

struct RunResult {
  std::vector<Literal> outputs;              ///< none of a sample
  std::vector<KernelRun> kernels;            ///< by index of plan.kernels
  std::vector<ComputationRun> computations;  ///< by index of plan.computations
  std::vector<StepRun> steps;                ///< by plan step
  std::vector<sim::Finding> findings;        ///< a run with findings has no outputs
  sim::SanitizerCounts sanitized;
  double total_us = 0;                  ///< steps and launch gaps; steps done once are not in it
  double once_us = 0;                   ///< of these
  std::vector<std::string> host_calls;  ///< library ops that the CPU reference computed, loops and branches
  /// Of the others, by op, what made them (Timed::by).
  std::map<std::string, std::string> library_calls;
  std::optional<Repeated> repeated;  ///< measured runs without host calls
};

/// Trips after which a loop is taken for one that never ends. A choice, not measured: ten times the longest
/// that models have (a scan over a sequence of 100,000).
inline constexpr std::int64_t kMaxTrips = 1'000'000;

/// What a run does otherwise than its plan alone says.
struct RunLimits {
  std::int64_t max_trips = kMaxTrips;  ///< of one loop
  /// Steps run in another order that their streams and waits allow, drawn by this seed; nullopt: the plan's.
  std::optional<std::uint32_t> shuffle;
};

/// Called before each step, and of loops of the entry before each trip: (done, total, what).
using RunProgress = std::function<void(int, int, const std::string&)>;

struct RunOptions {
  sim::CacheMode cache = sim::CacheMode::kCold;
  int host_threads = 0;
  bool sampled = false;  ///< sim::Options::sampled for every kernel that can be; there are no outputs then
  bool lines = false;    ///< KernelRun::lines
  sim::Sanitizers sanitize;
  /// By which matrix products of library calls are simulated, too; without, they are modelled, and made by
  /// the CPU reference.
  std::optional<TiledProduct> products;
  CompileOptions compile;  ///< of these
  RunLimits limits;
  RunProgress progress;
};

/// Throws Error naming the first op (and its line) that can be planned but not run: custom calls,
/// collectives, values of types nobody computes (complex, 4 and 8 bits), ...
void require_runnable(const Graph& graph);

/// Runs on `backend`; library calls that it does not make, by the CPU reference. Loops and branches run the
/// kernels of their computations' plans. Throws Error where a loop goes on after `limits.max_trips`, and
/// where a backend whose times are measured is to shuffle steps.
RunResult run_on(Backend& backend, const Graph& graph, const Device& device, const Executable& executable,
                 std::span<const Literal> inputs, const RunProgress& progress = {},
                 const RunLimits& limits = {});

/// run_on the PTX simulator.
RunResult run_simulated(const Graph& graph, const Device& device, const Executable& executable,
                        std::span<const Literal> inputs, const RunOptions& options = {});

}  // namespace stitchwork
