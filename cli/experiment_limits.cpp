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

ordered_json to_json(const Store& store, const ExperimentResults& results) {
  ordered_json trials = ordered_json::array();
  const auto json_of = [](const std::vector<TimePart>& parts) {
    ordered_json all = ordered_json::array();
    for (const TimePart& part : parts)
      all.push_back(
          {{"part", part.name}, {"us", part.us}, {"method", part.method}, {"meaning", part.meaning}});
    return all;
  };
  for (const TrialResults& trial : results.trials) {
    ordered_json kernels = ordered_json::array();
    for (const KernelResult& kernel : longest_first(read_kernels(store, trial)))
      kernels.push_back({{"kernel", kernel.name},
                         {"us", kernel.time_us.value},
                         {"method", kernel.time_us.method},
                         {"parts", json_of(time_parts(kernel))}});
    trials.push_back({{"trial_key", trial.key},
                      {"workload", trial.workload},
                      {"device", trial.device},
                      {"variant", trial.variant},
                      {"seed", trial.seed},
                      {"settings", trial.settings},
                      {"parts", json_of(time_parts(trial))},
                      {"kernels", kernels}});
  }
  return {{"schema", "stitchwork.limits/1"}, {"experiment", results.name}, {"trials", trials}};
}

/// The heading says "limited by" already.
std::string short_name(const std::string& part) {
  constexpr std::string_view kWords = "kernels limited by ";
  return part.starts_with(kWords) ? "kernels: " + part.substr(kWords.size()) : part;
}

void limits(Cli& cli, const std::string& db, const std::string& name) {
  const Store store = open_store(db);
  const ExperimentResults results = read_results(store, name);
  if (cli.json) return cli.print(to_json(store, results));
  Table table({"trial", "variant", ">us", "limited by", ">share", "then", ">share"});
  const std::vector<std::string> rows = row_names(results.trials);
  for (std::size_t t = 0; t < rows.size(); ++t) {
    const std::vector<TimePart> parts = time_parts(results.trials[t]);
    const double all = sum(parts);
    std::vector<std::string> line{rows[t], results.trials[t].variant,
                                  parts.empty() ? "-" : fmt::format("{:.2f}", all)};
    for (std::size_t i = 0; i < 2; ++i) {
      line.push_back(i < parts.size() ? short_name(parts[i].name) : "-");
      line.push_back(i < parts.size() ? fmt::format("{:.0f} %, {}", 100 * parts[i].us / all, parts[i].method)
                                      : "-");
    }
    table.add(line);
  }
  cli.print(table.text());
  for (const Limit& limit : kLimits)
    cli.print(fmt::format("kernels limited by {}: {}", limit.name, limit.meaning));
  cli.print("(a kernel is limited by the largest part of its time; --json has every kernel's parts)");
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
