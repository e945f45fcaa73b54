// stitchwork experiment import: counters of another tool
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/experiment.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/hlo/hlo_text.h"
#include "experiments/import.h"

namespace stitchwork {
namespace {

struct ExperimentImportArguments {
  std::string file, db;
  ImportOptions options;
};

void import_file(Cli& cli, const ExperimentImportArguments& a) {
  ImportOptions options = a.options;
  options.device = device(options.device).id;
  const std::string text = read_file(a.file);
  const ImportedProfile profile = parse_ncu_csv(text, a.file);
  const std::string db = a.db.empty() ? default_store_path() : a.db;
  Store store = Store::open(db);
  const bool fresh = import_profile(store, profile, options, sha256_hex(text));
  if (cli.json)
    return cli.print(nlohmann::ordered_json{{"schema", "stitchwork.import/1"},
                                            {"store", db},
                                            {"experiment", options.experiment},
                                            {"file", a.file},
                                            {"kernels", profile.kernels.size()},
                                            {"new", fresh}});
  cli.print(fresh ? fmt::format("{} kernels of {} imported into {}", profile.kernels.size(), a.file, db)
                  : fmt::format("{} is in {} already", a.file, db));
}

}  // namespace

void add_experiment_import(CLI::App& experiment, Cli& cli) {
  CLI::App* command = experiment.add_subcommand(
      "import", "counters that Nsight Compute measured (`ncu --csv`), as an experiment");
  auto a = std::make_shared<ExperimentImportArguments>();
  a->options.device = "v100-sxm2";
  command->add_option("FILE", a->file, "output of `ncu --csv --page raw` or `ncu --csv`")->required();
  command->add_option("--name", a->options.experiment, "of the experiment")->required();
  command->add_option("--workload", a->options.workload, "that was profiled")->required();
  command->add_option("--variant", a->options.variant, "column in tables")->capture_default_str();
  command->add_option("--device,-d", a->options.device, "that it ran on")->capture_default_str();
  add_db(*command, a->db);
  add_common(
      *command, cli,
      "  stitchwork experiment import ncu.csv --name profiled --workload bert --variant XLA --db runs.db");
  command->callback([&cli, a] { import_file(cli, *a); });
}

}  // namespace stitchwork
