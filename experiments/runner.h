// Carries out an experiment's trials and records them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "experiments/spec.h"

namespace stitchwork {

struct RunnerOptions {
  enum class Rerun : std::uint8_t { kNothing, kFailed, kAll };
  Rerun rerun =
      Rerun::kFailed;  ///< of the trials that have an attempt; without, those that came out ok are skipped
  /// Attempts that every trial shall have: ok ones (with kNothing any), those of earlier runs among them;
  /// with kAll so many more.
  int rounds = 1;
  bool interleave = false;    ///< round by round, not trial by trial
  int shard = 1, shards = 1;  ///< every shards-th trial, from this one (1 = the first)
  /// (trials done, of how many, seconds left or -1, what is happening).
  std::function<void(std::size_t, std::size_t, double, const std::string&)> progress;
};

struct RunnerSummary {
  std::size_t trials = 0, skipped = 0, ok = 0, failed = 0;
  /// What came out ok before and is carried out again, since it would come out otherwise: "trial: why".
  std::vector<std::string> again;
  /// What failed: "trial: reason".
  std::vector<std::string> failures;
};

/// The trials that would be run, as text, in order; what is run again is followed by why.
std::vector<std::string> trials_to_run(const ExperimentSpec& spec, const std::string& db,
                                       const RunnerOptions& options);

/// Each trial is run by a process of its own, which records its result in `db`: one that fails, crashes or
/// takes longer than the experiment allows is recorded as such, and the others go on. A kill at any moment
/// loses at most the trial under way. Throws Error for a workload that cannot be read, and where another
/// runner is recording into `db`.
RunnerSummary run_experiment(const ExperimentSpec& spec, const std::string& db, const RunnerOptions& options);

}  // namespace stitchwork
