// stitchwork experiment run
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/experiment.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "experiments/runner.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct RunFlags {
  std::string spec, db, rerun = "failed", shard = "1/1";
  int rounds = 1;
  bool interleave = false, dry_run = false;
};

void parse_shard(const std::string& text, RunnerOptions& options) {
  int used = 0;
  if (std::sscanf(text.c_str(), "%d/%d%n", &options.shard, &options.shards, &used) != 2 ||
      used != static_cast<int>(text.size()) || options.shard < 1 || options.shards < options.shard)
    throw Error(fmt::format("--shard {}: not a shard", text), "it is K/N with 1 <= K <= N, as in 2/4");
}

void run(Cli& cli, const RunFlags& a) {
  const ExperimentSpec spec = read_experiment(a.spec);
  const std::string db = a.db.empty() ? default_store_path() : a.db;
  RunnerOptions options;
  options.rerun = a.rerun == "none"  ? RunnerOptions::Rerun::kNothing
                  : a.rerun == "all" ? RunnerOptions::Rerun::kAll
                                     : RunnerOptions::Rerun::kFailed;
  options.rounds = a.rounds;
  options.interleave = a.interleave;
  parse_shard(a.shard, options);
  options.progress = [&](std::size_t done, std::size_t of, double left, const std::string& what) {
    const std::string time = left < 0 ? "" : fmt::format(", {:.0f} s left", left);
    cli.progress(of == 0 ? what : fmt::format("[{}/{}{}] {}", done, of, time, what));
  };
  if (a.dry_run) {
    const std::vector<std::string> trials = trials_to_run(spec, db, options);
    cli.progress("");
    if (cli.json)
      return cli.print(ordered_json{{"schema", "stitchwork.experiment-run/1"},
                                    {"experiment", spec.name},
                                    {"store", db},
                                    {"dry_run", true},
                                    {"to_run", trials}});
    for (const std::string& trial : trials) cli.print(trial);
    cli.print(fmt::format("{} trials to run into {}", trials.size(), db));
    return;
  }
  const RunnerSummary summary = run_experiment(spec, db, options);
  cli.progress("");
  if (summary.failed > 0) cli.exit_code = kExitBadInput;
  if (cli.json)
    return cli.print(ordered_json{{"schema", "stitchwork.experiment-run/1"},
                                  {"experiment", spec.name},
                                  {"store", db},
                                  {"trials", summary.trials},
                                  {"skipped", summary.skipped},
                                  {"again", summary.again},
                                  {"ok", summary.ok},
                                  {"failed", summary.failed},
                                  {"failures", summary.failures}});
  for (const std::string& again : summary.again) cli.print("again: " + again);
  for (const std::string& failure : summary.failures) cli.err << fmt::format("stitchwork: {}\n", failure);
  cli.print(fmt::format("{}: {} trials, {} skipped (ok before), {} ok, {} failed; recorded in {}", spec.name,
                        summary.trials, summary.skipped, summary.ok, summary.failed, db));
}

}  // namespace

void add_experiment_run(CLI::App& experiment, Cli& cli) {
  CLI::App* command =
      experiment.add_subcommand("run", "carry out an experiment's trials; those that are ok are kept");
  auto a = std::make_shared<RunFlags>();
  command->add_option("SPEC", a->spec, "JSON (docs/experiments.md)")->required();
  add_db(*command, a->db);
  command->add_option("--rerun", a->rerun, "trials that have an attempt: none, failed or all of them again")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "failed", "all"}));
  command->add_option("--rounds", a->rounds, "attempts that each trial shall have; those in the store count")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  command->add_flag("--interleave", a->interleave, "round by round, not trial by trial");
  command->add_option("--shard", a->shard, "K/N: every N-th trial from the K-th on")->capture_default_str();
  command->add_flag("--dry-run", a->dry_run, "only list the trials");
  add_common(*command, cli,
             "  stitchwork experiment run experiments/astitch/models.json --dry-run\n"
             "  stitchwork experiment run experiments/astitch/models.json --db astitch-models.db");
  command->callback([&cli, a] { run(cli, *a); });
}

}  // namespace stitchwork
