// One trial: a model planned, compiled, run and checked. What `run` prints, the store records and the demo
// repeats.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/judge/cost.h"
#include "analysis/planners/planner.h"
#include "codegen/executable.h"
#include "core/base/version.h"
#include "core/evaluate/judge.h"
#include "experiments/device_limits.h"
#include "experiments/model.h"
#include "runtime/cuda/backend.h"
#include "runtime/run.h"

namespace stitchwork {

struct TrialSpec {
  std::string variant;  ///< as an experiment's tables call it; "" = the planner
  std::string planner = "astitch";
  PlanOptions options;
  std::optional<FusionPlan> plan;  ///< run this one instead of planning
  std::string dump;                ///< "": none; folder of a compiler's dump to run instead (docs/peers.md)
  std::string device = "v100-sxm2";
  DeviceLimits limits;          ///< of it
  std::string backend = "sim";  ///< or "cuda"; or "model": nothing runs, times are the plan's estimates
  sim::CacheMode cache = sim::CacheMode::kCold;
  std::uint64_t seed = 0;
  std::string inputs_dir;  ///< "" = from the seed; else <parameter name or number>.npy
  bool check = false;
  bool sampled = false;      ///< RunOptions::sampled: counters and times, no outputs
  sim::Sanitizers sanitize;  ///< no part of the key: they change no number
  bool lines = false;        ///< RunOptions::lines; no part of the key either
  std::int64_t max_trips =
      kMaxTrips;  ///< of one loop; no part of the key: where it matters there is no result
  std::optional<std::uint32_t> shuffle;  ///< RunLimits; no part of the key: with a cold cache all is equal
  CompileOptions compile;
  int repeats = 20;                         ///< cuda: of every kernel and of the whole
  std::string products;                     ///< sim: RunOptions::products by name; "": modelled
  std::string convolutions = "auto";        ///< cuda: or "cudnn", "patches" (cuda::parse_convolutions)
  std::string results = results_version();  ///< of the program that carries it out
};

/// What tables call it.
std::string variant_of(const TrialSpec& spec);

/// The device as the trial has it.
Device target_of(const TrialSpec& spec);

struct TrialResult {
  Executable executable;  ///< its plan included
  RunResult run;
  std::optional<CheckResult> check;  ///< empty if not asked for
  double plan_ms = 0, compile_ms = 0, run_ms = 0;
  std::vector<KernelCost> costs;  ///< modelled, of the plan's kernels
  PlanCost cost;                  ///< modelled, of the whole plan with all that its loops and branches run
  std::optional<cuda::Gpu> gpu;   ///< that it ran on; none where none was used

  /// No findings, and the check (if asked for) passed.
  bool ok() const { return run.findings.empty() && (!check || check->ok); }
};

/// (fraction done, what is happening).
using TrialProgress = std::function<void(double, const std::string&)>;

/// Inputs of the model for the spec: from the seed or from .npy files. Throws Error naming the file for a
/// missing or wrong array.
std::vector<Literal> trial_inputs(const Model& model, const TrialSpec& spec);

/// How exactly the trial's kernels and library calls may compute.
Arithmetic arithmetic_of(const TrialSpec& spec);

/// Plans, compiles, runs, checks. `judge`, if given, is the model's for these inputs and this arithmetic, and
/// serves several trials (else one is made when the check is asked for).
TrialResult run_trial(const Model& model, const TrialSpec& spec, const TrialProgress& progress = {},
                      Judge* judge = nullptr);

/// "stitchwork.run/1": the plan's keys plus counters, times and the check (docs/schema/run.schema.json).
nlohmann::ordered_json run_to_json(const Model& model, const TrialSpec& spec, const TrialResult& result);

/// Every setting that decides the result, by name: the version of the program's results, the content of the
/// model (model_sha256), device, backend, seed, planner, knobs, ...; what a backend does not heed is left
/// out. Not the commit or host.
nlohmann::ordered_json trial_params(const Model& model, const TrialSpec& spec);

/// The trial's identity: sha256 of its workload's and variant's names and of trial_params. A resumed
/// experiment skips equal keys.
std::string trial_key(const Model& model, const TrialSpec& spec);

}  // namespace stitchwork
