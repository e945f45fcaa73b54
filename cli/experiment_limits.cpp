// stitchwork experiment limits: what limits each workload
#include <nlohmann/json.hpp>

#include "cli/experiment.h"
#include "cli/table.h"
#include "experiments/limits.h"
#include "experiments/results.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

double sum(const std::vector<TimePart>& parts) {
  double us = 0;
  for (const TimePart& part : parts) us += part.us;
  return us;
}

ordered_json to_json(const ExperimentResults& results) {
  ordered_json trials = ordered_json::array();
  for (const TrialResults& trial : results.trials) {
    ordered_json all = ordered_json::array();
    for (const TimePart& part : time_parts(trial))
      all.push_back({{"part", part.name}, {"us", part.us}, {"meaning", part.meaning}});
    trials.push_back({{"workload", trial.workload},
                      {"device", trial.device},
                      {"variant", trial.variant},
                      {"seed", trial.seed},
                      {"parts", all}});
  }
  return {{"schema", "stitchwork.limits/1"}, {"experiment", results.name}, {"trials", trials}};
}

void limits(Cli& cli, const std::string& db, const std::string& name) {
  const Store store = open_store(db);
  const ExperimentResults results = read_results(store, name);
  if (cli.json) return cli.print(to_json(results));
  Table table({"workload", "device", "variant", ">us", "limited by", ">share", "then", ">share"});
  for (const TrialResults& trial : results.trials) {
    const std::vector<TimePart> parts = time_parts(trial);
    const double all = sum(parts);
    std::vector<std::string> line{trial.workload, trial.device, trial.variant,
                                  parts.empty() ? "-" : fmt::format("{:.2f}", all)};
    for (std::size_t i = 0; i < 2; ++i) {
      line.push_back(i < parts.size() ? parts[i].name : "-");
      line.push_back(i < parts.size() ? fmt::format("{:.0f} %", 100 * parts[i].us / all) : "-");
    }
    table.add(line);
  }
  cli.print(table.text());
  for (const Limit& limit : kLimits)
    cli.print(fmt::format("kernels limited by {}: {}", limit.name, limit.meaning));
  cli.print("(modelled from the plans; library calls and what lies between kernels as the trials have them)");
}

}  // namespace

void add_experiment_limits(CLI::App& experiment, Cli& cli) {
  CLI::App* command = experiment.add_subcommand("limits", "what limits each workload: where its time goes");
  auto db = std::make_shared<std::string>(), name = std::make_shared<std::string>();
  command->add_option("NAME", *name, "of the experiment")->required();
  add_db(*command, *db);
  add_common(*command, cli, "  stitchwork experiment limits astitch-models --db astitch.db");
  command->callback([&cli, db, name] { limits(cli, *db, *name); });
}

}  // namespace stitchwork
