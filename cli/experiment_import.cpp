// stitchwork experiment import: the profile of another tool
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/experiment.h"
#include "cli/profile.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "experiments/profile/import.h"
#include "experiments/profile/profile_text.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct ExperimentImportArguments {
  std::string file, db;
  ImportOptions options;
  PlanArguments plan;  ///< of --model
  const CLI::Option* planner = nullptr;
  std::optional<std::int64_t> iterations;
};

void import_file(Cli& cli, const ExperimentImportArguments& a) {
  ImportOptions options = a.options;
  options.device = device(a.plan.device).id;
  if (options.workload.empty() && a.plan.model.empty())
    throw Error("neither --model nor --workload is given",
                "--model MODEL says what was profiled and holds the profile to it; --workload only names it");
  const Profile profile = read_profile(a.file);
  ImportedIteration iteration;
  std::string summary;
  ordered_json matched = nullptr;
  if (a.plan.model.empty()) {
    iteration = unmatched_iteration(profile, a.iterations);
  } else {
    OpTrace trace;
    const Planned planned = planned_for_profile(a.plan, a.planner->count() > 0, trace);
    const ProfileComparison c = compare_profile(profile, planned.model, trace, planned.plan, a.iterations);
    iteration = matched_iteration(c, planned.model, planned.plan);
    options.model_sha256 = planned.model.graph.source_sha256;
    if (options.workload.empty()) options.workload = planned.model.graph.source;
    summary = profile_summary(profile, c) + profile_findings(c, planned.plan);
    matched = c.matched;
  }
  const std::string db = a.db.empty() ? default_store_path() : a.db;
  Store store = Store::open(db);
  const bool fresh = import_profile(store, profile, iteration, options, sha256_hex(read_file(a.file)));
  if (cli.json)
    return cli.print(ordered_json{{"schema", "stitchwork.import/1"},
                                  {"store", db},
                                  {"experiment", options.experiment},
                                  {"workload", options.workload},
                                  {"file", a.file},
                                  {"tool", profile.tool},
                                  {"iterations", iteration.iterations.iterations},
                                  {"kernels", iteration.kernels()},
                                  {"matched", matched},
                                  {"new", fresh}});
  if (!summary.empty()) cli.print(summary);
  const std::int64_t times = iteration.iterations.iterations;
  cli.print(fresh ? fmt::format("{} of {}{} imported into {}", counted(iteration.kernels(), "kernel"), a.file,
                                times == 1 ? "" : fmt::format(", means of {} iterations,", times), db)
                  : fmt::format("{} is in {} already", a.file, db));
}

}  // namespace

void add_experiment_import(CLI::App& experiment, Cli& cli) {
  CLI::App* command = experiment.add_subcommand(
      "import", "the profile of another tool (Nsight Systems and Compute, JAX, PyTorch), as an experiment");
  auto a = std::make_shared<ExperimentImportArguments>();
  a->options.experiment = "profiles";
  a->options.variant = "profile";  // a planner is called imported
  command
      ->add_option("PROFILE", a->file,
                   "nsys export --type sqlite, ncu --csv (--page raw or details), or the Chrome trace of JAX "
                   "or PyTorch (.json, .json.gz)")
      ->required();
  command->add_option("--model,-m", a->plan.model,
                      std::string("that was profiled: launches are held to its ops. ") + kModelHelp);
  a->plan.open.add(*command);
  command->add_option("--name", a->options.experiment, "of the experiment")->capture_default_str();
  command->add_option("--workload", a->options.workload, "that was profiled; without it the model's name");
  command->add_option("--variant", a->options.variant, "column in tables")->capture_default_str();
  a->planner = command->add_option("--planner,-p", a->plan.planner,
                                   "of the plan that launches are held to: of XLA's compiled modules "
                                   "imported, else " +
                                       a->plan.planner);
  command->add_option("--device,-d", a->plan.device, "that it ran on")->capture_default_str();
  command->add_option("--iterations", a->iterations, "so many the profile has; without it they are found")
      ->check(CLI::PositiveNumber);
  add_db(*command, a->db);
  add_common(
      *command, cli,
      "  stitchwork experiment import jax.json --model dumps/fig7-a100/after.hlo -d a100-sxm-80 --db "
      "runs.db\n"
      "  stitchwork experiment import ncu.csv --name profiled --workload bert --variant XLA --db runs.db");
  command->callback([&cli, a] { import_file(cli, *a); });
}

}  // namespace stitchwork
