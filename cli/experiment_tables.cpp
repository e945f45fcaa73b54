// stitchwork experiment show | ablate | export
#include <nlohmann/json.hpp>
#include <set>

#include "cli/experiment.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "core/base/suggest.h"
#include "experiments/comparison.h"
#include "figures/data/forms.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

ordered_json results_json(const Store& store, const ExperimentResults& results) {
  ordered_json trials = ordered_json::array();
  for (const TrialResults& t : results.trials) {
    ordered_json series = ordered_json::object(), others = ordered_json::array();
    for (const auto& [metric, all] : t.series)
      for (const Series& s : all) {
        ordered_json one{
            {"median", s.median()}, {"n", s.values.size()}, {"method", s.method}, {"source", s.source}};
        if (&s == t.find(metric)) {
          series[metric] = one;
        } else {
          one["metric"] = metric;
          others.push_back(one);
        }
      }
    trials.push_back({{"trial_key", t.key},
                      {"workload", t.workload},
                      {"device", t.device},
                      {"variant", t.variant},
                      {"seed", t.seed},
                      {"settings", t.settings},
                      {"status", t.status},
                      {"reason", t.reason.empty() ? ordered_json() : ordered_json(t.reason)},
                      {"metrics", series},
                      {"others", others}});
  }
  return {{"schema", "stitchwork.experiment-results/1"},
          {"store", store.path()},
          {"experiment", results.name},
          {"variants", results.variants},
          {"trials", trials}};
}

/// Throws Error naming close ones where no trial has a metric of that name; an experiment without numbers has
/// any.
void require_metrics(const ExperimentResults& results, const std::vector<std::string>& metrics) {
  std::set<std::string_view> all;
  for (const TrialResults& t : results.trials)
    for (const auto& [metric, series] : t.series) all.insert(metric);
  for (const std::string& metric : metrics) {
    if (all.empty() || all.contains(metric)) continue;
    constexpr std::size_t kNames = 5;  // A choice, not measured: what a line holds.
    throw Error(
        fmt::format("no trial of {} has a metric called '{}'", results.name, metric),
        fmt::format("close names: {}", fmt::join(nearest(metric, {all.begin(), all.end()}, kNames), ", ")));
  }
}

void show(Cli& cli, const std::string& db, const std::string& name, const std::vector<std::string>& metrics) {
  const Store store = open_store(db);
  const ExperimentResults results = read_results(store, name);
  require_metrics(results, metrics);
  if (cli.json) return cli.print(results_json(store, results));
  const std::vector<std::string> rows_of = row_names(results.trials);
  for (const std::string& metric : metrics) {
    std::vector<std::string> heads{metric};
    for (const std::string& variant : results.variants) heads.push_back(">" + variant);
    Table table(heads);
    std::set<std::string> methods;
    std::vector<std::string> names;
    std::map<std::string, std::vector<std::string>> rows;
    for (std::size_t i = 0; i < rows_of.size(); ++i) {
      const TrialResults& t = results.trials[i];
      const std::string& row = rows_of[i];
      if (!rows.contains(row)) names.push_back(row);
      std::vector<std::string>& values = rows.try_emplace(row, results.variants.size(), "-").first->second;
      const auto column = std::find(results.variants.begin(), results.variants.end(), t.variant);
      std::string& value = values[static_cast<std::size_t>(column - results.variants.begin())];
      const Series* series = t.find(metric);
      value = series == nullptr ? t.status : number_text(series->median());
      if (series != nullptr) methods.insert(series->method);
    }
    for (const std::string& row : names) {
      std::vector<std::string> line{row};
      line.insert(line.end(), rows[row].begin(), rows[row].end());
      table.add(line);
    }
    cli.print(table.text() + fmt::format("({})\n", fmt::join(methods, ", ")));
  }
}

void ablate_command(Cli& cli, const std::string& db, const std::string& name, const std::string& base,
                    const std::string& metric) {
  const Store store = open_store(db);
  const Ablation ablation = ablate(read_results(store, name), base, metric);
  const auto value = [](const std::optional<double>& ratio) {
    return ratio ? fmt::format("{:.2f}x", *ratio) : std::string("-");
  };
  if (cli.json) {
    const auto list_of = [](const std::vector<std::optional<double>>& values) {
      ordered_json all = ordered_json::array();
      for (const auto& x : values) all.push_back(x ? ordered_json(*x) : ordered_json());
      return all;
    };
    ordered_json rows = ordered_json::array();
    for (const Ablation::Row& row : ablation.rows)
      rows.push_back({{"row", row.name},
                      {"workload", row.workload},
                      {"device", row.device},
                      {"seed", row.seed},
                      {"ratios", list_of(row.ratios)}});
    return cli.print(ordered_json{{"schema", "stitchwork.ablation/1"},
                                  {"experiment", name},
                                  {"metric", metric},
                                  {"methods", ablation.methods},
                                  {"base", base},
                                  {"variants", ablation.variants},
                                  {"rows", rows},
                                  {"geometric_means", list_of(ablation.geometric_means)}});
  }
  std::vector<std::string> heads{fmt::format("{} against {}", metric, base)};
  for (const std::string& variant : ablation.variants) heads.push_back(">" + variant);
  Table table(heads);
  const auto add = [&](const std::string& head, const std::vector<std::optional<double>>& ratios) {
    std::vector<std::string> line{head};
    for (const auto& ratio : ratios) line.push_back(value(ratio));
    table.add(line);
  };
  for (const Ablation::Row& row : ablation.rows) add(row.name, row.ratios);
  add("geometric mean", ablation.geometric_means);
  cli.print(table.text() + fmt::format("({}; more than 1x is better)", fmt::join(ablation.methods, ", ")));
}

void export_results(Cli& cli, const std::string& db, const std::string& name, const std::string& format,
                    const std::string& output) {
  const Store store = open_store(db);
  const ExperimentResults results = read_results(store, name);
  std::string text;
  if (format == "json") {
    text = results_json(store, results).dump(2) + "\n";
  } else {
    const bool csv = format == "csv";
    text = csv ? "workload,device,variant,seed,status,metric,median,n,method,source,settings,trial_key\n"
               : "| trial | variant | metric | median | n | method |\n|---|---|---|---|---|---|\n";
    const std::vector<std::string> rows = row_names(results.trials);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const TrialResults& t = results.trials[i];
      const std::string trial = fmt::format("{},{},{},{},{}", csv_field(t.workload), t.device,
                                            csv_field(t.variant), t.seed, t.status),
                        identity = csv_field(ordered_json(t.settings).dump()) + "," + t.key;
      if (t.series.empty() && csv) text += fmt::format("{},,,,,,{}\n", trial, identity);
      for (const auto& [metric, all] : t.series)
        for (const Series& s : all)
          text += csv ? fmt::format("{},{},{:.9g},{},{},{},{}\n", trial, metric, s.median(), s.values.size(),
                                    s.method, csv_field(s.source), identity)
                      : fmt::format("| {} | {} | {} | {:.6g} | {} | {} |\n", rows[i], t.variant, metric,
                                    s.median(), s.values.size(), s.method);
    }
  }
  if (output.empty() && cli.json && format != "json")
    return cli.print(ordered_json{{"schema", "stitchwork.export/1"},
                                  {"experiment", name},
                                  {"file", nullptr},
                                  {"format", format},
                                  {"text", text}});
  if (output.empty()) return cli.print(text);
  write_file(output, text);
  if (cli.json)
    return cli.print(ordered_json{
        {"schema", "stitchwork.export/1"}, {"experiment", name}, {"file", output}, {"format", format}});
  cli.print(fmt::format("{} written", output));
}

}  // namespace

void add_experiment_show(CLI::App& experiment, Cli& cli) {
  CLI::App* command = experiment.add_subcommand("show", "an experiment's numbers, a row a workload");
  auto db = std::make_shared<std::string>(), name = std::make_shared<std::string>();
  auto metrics = std::make_shared<std::vector<std::string>>(
      std::vector<std::string>{"memory_kernels", "kernel_us", "total_us"});
  command->add_option("NAME", *name, "of the experiment")->required();
  command->add_option("--metric", *metrics, "comma-separated")->delimiter(',')->capture_default_str();
  add_db(*command, *db);
  add_common(*command, cli, "  stitchwork experiment show astitch-models --metric memory_kernels,total_us");
  command->callback([&cli, db, name, metrics] { show(cli, *db, *name, *metrics); });
}

void add_experiment_ablate(CLI::App& experiment, Cli& cli) {
  CLI::App* command = experiment.add_subcommand("ablate", "how much better each variant is than a base");
  auto db = std::make_shared<std::string>(), name = std::make_shared<std::string>(),
       base = std::make_shared<std::string>(), metric = std::make_shared<std::string>("total_us");
  command->add_option("NAME", *name, "of the experiment")->required();
  command->add_option("--base", *base, "variant that the others are compared with")->required();
  command->add_option("--metric", *metric, "compared")->capture_default_str();
  add_db(*command, *db);
  add_common(*command, cli, "  stitchwork experiment ablate astitch-models --base XLA --metric kernel_us");
  command->callback([&cli, db, name, base, metric] { ablate_command(cli, *db, *name, *base, *metric); });
}

void add_experiment_export(CLI::App& experiment, Cli& cli) {
  CLI::App* command = experiment.add_subcommand("export", "all numbers of an experiment");
  auto db = std::make_shared<std::string>(), name = std::make_shared<std::string>(),
       format = std::make_shared<std::string>("csv"), output = std::make_shared<std::string>();
  command->add_option("NAME", *name, "of the experiment")->required();
  command->add_option("--format", *format, "csv, json or md")
      ->capture_default_str()
      ->check(CLI::IsMember({"csv", "json", "md"}));
  command->add_option("-o,--output", *output, "file (default: stdout)");
  add_db(*command, *db);
  add_common(*command, cli,
             "  stitchwork experiment export astitch-models --format csv -o astitch-models.csv");
  command->callback([&cli, db, name, format, output] { export_results(cli, *db, *name, *format, *output); });
}

}  // namespace stitchwork
