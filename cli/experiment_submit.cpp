// stitchwork experiment submit: an experiment as a Slurm job array
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/experiment.h"
#include "core/base/error.h"
#include "experiments/slurm.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

struct ExperimentSubmitArguments {
  SlurmOptions options;
  bool slurm = false, dry_run = false;
};

void submit(Cli& cli, const ExperimentSubmitArguments& a) {
  if (!a.slurm) throw Error("where to is not said", "--slurm submits a Slurm job array");
  SlurmOptions options = a.options;
  const ExperimentSpec spec = read_experiment(options.spec);
  std::error_code ignored;
  options.program = fs::read_symlink("/proc/self/exe", ignored).string();
  options.spec = fs::absolute(find_experiment(options.spec)).string();
  options.folder = fs::absolute(options.folder.empty() ? "slurm-" + spec.name : options.folder).string();
  options.db = fs::absolute(options.db.empty() ? default_store_path() : options.db).string();
  options.shards = std::min(options.shards, static_cast<int>(cells(spec).size()));
  const std::vector<std::string> scripts = write_slurm_scripts(spec, options);
  Submitted jobs;
  if (!a.dry_run) jobs = submit_to_slurm(scripts);
  if (cli.json)
    return cli.print(nlohmann::ordered_json{{"schema", "stitchwork.submission/1"},
                                            {"experiment", spec.name},
                                            {"shards", options.shards},
                                            {"scripts", scripts},
                                            {"array_job", jobs.array_job},
                                            {"merge_job", jobs.merge_job},
                                            {"store", options.db}});
  for (const std::string& script : scripts) cli.print(fmt::format("{} written", script));
  if (a.dry_run) return cli.print("nothing submitted: --dry-run");
  cli.print(fmt::format("{}: job {} of {} shards, job {} joins them into {}", spec.name, jobs.array_job,
                        options.shards, jobs.merge_job, options.db));
}

}  // namespace

void add_experiment_submit(CLI::App& experiment, Cli& cli) {
  CLI::App* command =
      experiment.add_subcommand("submit", "run an experiment's shards as a job array of a cluster");
  auto a = std::make_shared<ExperimentSubmitArguments>();
  command->add_option("SPEC", a->options.spec, "JSON (docs/experiments.md)")->required();
  command->add_flag("--slurm", a->slurm, "to Slurm, by sbatch");
  command->add_option("--shards", a->options.shards, "tasks, each with a share of the trials")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command->add_option(
      "--folder", a->options.folder,
      "of scripts, logs and the shards' stores, on a disk that nodes share (default slurm-NAME)");
  command->add_option("--tries", a->options.tries, "of a task whose runner is killed")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--sbatch", a->options.sbatch, "an option of sbatch for both jobs; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", a->dry_run, "only write the scripts");
  add_db(*command, a->options.db);
  add_common(
      *command, cli,
      "  stitchwork experiment submit experiments/astitch/models.json --slurm --shards 4 --db models.db\n"
      "  stitchwork experiment submit spec.json --slurm --sbatch=--partition=cpu --sbatch=--time=1:00:00");
  command->callback([&cli, a] { submit(cli, *a); });
}

}  // namespace stitchwork
