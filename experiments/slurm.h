// An experiment as a Slurm job array: a task a shard, each with a store of its own, and a job that joins
// them.
#pragma once

#include <string>
#include <vector>

#include "experiments/spec.h"

namespace stitchwork {

struct SlurmOptions {
  std::string program;  ///< of the tasks: this one, by its full path
  std::string spec;     ///< path of the experiment
  std::string folder;   ///< of scripts, logs and the shards' stores: on a disk that all nodes share
  std::string db;       ///< that the shards are joined into
  int shards = 8;
  int tries = 3;                    ///< of a task whose runner ends by a signal
  std::vector<std::string> sbatch;  ///< more lines of the job, without "#SBATCH": "--partition=gpu"
};

/// What a shard's task does: runs its trials into its store; what was ok before is kept. A runner that is
/// killed is started again, and goes on behind the trials that it had recorded.
std::string slurm_array_script(const ExperimentSpec& spec, const SlurmOptions& options);
/// Joins the shards' stores. Tasks that failed have left what they had.
std::string slurm_merge_script(const ExperimentSpec& spec, const SlurmOptions& options);

struct Submitted {
  std::string array_job, merge_job;  ///< Slurm's numbers
};
/// Writes both scripts into the folder, which is made. Returns their paths.
std::vector<std::string> write_slurm_scripts(const ExperimentSpec& spec, const SlurmOptions& options);
/// Submits them: the second waits for all tasks of the first, however they end. Throws Error with what sbatch
/// said.
Submitted submit_to_slurm(const std::vector<std::string>& scripts);

}  // namespace stitchwork
