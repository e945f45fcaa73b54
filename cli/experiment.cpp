// stitchwork experiment list | merge, and the command that has them all
#include "cli/experiment.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "experiments/comparison.h"
#include "experiments/merge.h"

namespace stitchwork {

Store open_store(const std::string& given) {
  const std::string db = given.empty() ? default_store_path() : given;
  if (!std::filesystem::exists(db))
    throw Error(db, 0, 0, "no such store", "make one: stitchwork experiment run SPEC --db FILE");
  return Store::read(db);
}

std::string number_text(const std::optional<double>& value, int digits) {
  if (!value) return "-";
  if (*value == std::floor(*value) && std::abs(*value) < 1e15)
    return with_commas(static_cast<long long>(*value));
  return fmt::format("{:.{}f}", *value, digits);
}

void add_db(CLI::App& command, std::string& db) {
  command.add_option("--db", db, "store (default ${XDG_DATA_HOME:-~/.local/share}/stitchwork/runs.db)");
}

namespace {

using nlohmann::ordered_json;

void list(Cli& cli, const std::string& db) {
  const Store store = open_store(db);
  const std::vector<ExperimentEntry> entries = list_experiments(store);
  if (cli.json) {
    ordered_json all = ordered_json::array();
    for (const ExperimentEntry& e : entries)
      all.push_back({{"name", e.name}, {"trials", e.trials}, {"ok", e.ok}, {"failed", e.failed}});
    return cli.print(
        ordered_json{{"schema", "stitchwork.experiments/1"}, {"store", store.path()}, {"experiments", all}});
  }
  Table table({"experiment", ">trials", ">ok", ">failed"});
  for (const ExperimentEntry& e : entries)
    table.add({e.name, with_commas(e.trials), with_commas(e.ok), with_commas(e.failed)});
  cli.print(table.text());
}

void merge(Cli& cli, const std::string& given, const std::vector<std::string>& others) {
  const std::string db = given.empty() ? default_store_path() : given;
  Store store = Store::open(db);
  Merged all;
  for (const std::string& other : others) {
    const Merged one = merge_store(store, other);
    all.attempts += one.attempts;
    all.known += one.known;
  }
  if (cli.json)
    return cli.print(ordered_json{{"schema", "stitchwork.merge/1"},
                                  {"store", db},
                                  {"others", others},
                                  {"attempts", all.attempts},
                                  {"known", all.known}});
  cli.print(fmt::format("{} attempts added to {}, {} were there", all.attempts, db, all.known));
}

}  // namespace

void add_experiment(CLI::App& app, Cli& cli) {
  CLI::App* experiment = app.add_subcommand("experiment", "sweeps of trials, their tables and comparisons");
  experiment->require_subcommand(1);
  add_experiment_run(*experiment, cli);
  {
    CLI::App* command = experiment->add_subcommand("list", "the experiments of a store");
    auto db = std::make_shared<std::string>();
    add_db(*command, *db);
    add_common(*command, cli, "  stitchwork experiment list --db runs.db");
    command->callback([&cli, db] { list(cli, *db); });
  }
  add_experiment_show(*experiment, cli);
  add_experiment_ablate(*experiment, cli);
  add_experiment_compare(*experiment, cli);
  {
    CLI::App* command =
        experiment->add_subcommand("merge", "add the attempts of other stores: shards, other machines");
    auto db = std::make_shared<std::string>();
    auto others = std::make_shared<std::vector<std::string>>();
    command->add_option("OTHER", *others, "stores to add; they are not changed")->required();
    add_db(*command, *db);
    add_common(*command, cli, "  stitchwork experiment merge shard2.db shard3.db --db shard1.db");
    command->callback([&cli, db, others] { merge(cli, *db, *others); });
  }
  add_experiment_limits(*experiment, cli);
  add_experiment_import(*experiment, cli);
  add_experiment_submit(*experiment, cli);
  add_experiment_export(*experiment, cli);
}

}  // namespace stitchwork
