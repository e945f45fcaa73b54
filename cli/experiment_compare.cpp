// stitchwork experiment compare
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/experiment.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "experiments/comparison.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct CompareFlags {
  std::string a, b, db, other_db, metric = "total_us", fail_on, format = "table";
  double factor = 1.05, alpha = 0.05;
  bool only_changed = false, mixed = false;
};

/// Intervals and p only where a trial has them. What is in one of the two alone comes last.
std::string comparison_text(std::vector<Change> changes, const CompareFlags& f) {
  std::stable_partition(changes.begin(), changes.end(), [](const Change& c) { return c.before && c.after; });
  const bool repeated = std::any_of(changes.begin(), changes.end(), [](const Change& c) { return c.p; });
  std::vector<std::string> heads{"", "trial", ">" + f.a, ">" + f.b, ">ratio"};
  if (repeated) heads.insert(heads.end(), {">95 %", ">p", ">n"});
  Table table(heads);
  std::set<std::string> devices;
  std::set<std::int64_t> seeds;
  for (const Change& c : changes) devices.insert(c.device), seeds.insert(c.seed);
  const auto row_of = [&](const Change& c) {
    return c.name + (devices.size() > 1 ? " on " + c.device : "") +
           (seeds.size() > 1 ? fmt::format(" seed {}", c.seed) : "") + ", " + c.variant;
  };
  const auto median = [&](const std::optional<Series>& series) {
    if (f.format == "csv") return series ? fmt::format("{}", series->median()) : std::string();
    return number_text(series ? std::optional(series->median()) : std::nullopt);
  };
  for (const Change& c : changes) {
    std::vector<std::string> row{
        std::string(1, c.mark), row_of(c), median(c.before), median(c.after),
        c.ratio ? fmt::format("{:.3f}", *c.ratio) : (c.before ? "only before" : "only after")};
    if (repeated) {
      row.push_back(c.interval ? fmt::format("{:.3f}-{:.3f}", c.interval->low, c.interval->high) : "-");
      row.push_back(c.p ? fmt::format("{:.2g}", *c.p) : "-");
      const auto n = [](const std::optional<Series>& series) { return series ? series->values.size() : 0; };
      row.push_back(fmt::format("{}, {}", n(c.before), n(c.after)));
    }
    table.add(std::move(row));
  }
  return f.format == "md" ? table.markdown() : f.format == "csv" ? table.csv() : table.text();
}

/// How many trials that are compared differ in what.
std::map<std::string, int> differing_trials(const std::vector<Change>& changes) {
  std::map<std::string, int> found;
  for (const Change& c : changes)
    if (!c.differences.empty()) ++found[c.differences];
  return found;
}

void compare(Cli& cli, const CompareFlags& f) {
  const Store store = open_store(f.db);
  const ExperimentResults before = read_results(store, f.a);
  const ExperimentResults after =
      f.other_db.empty() ? read_results(store, f.b) : read_results(open_store(f.other_db), f.b);
  std::vector<Change> changes = compare_results(before, after, f.metric, f.factor, f.alpha, f.mixed);
  if (f.only_changed) std::erase_if(changes, [](const Change& c) { return c.mark == '~'; });
  const auto worse = static_cast<std::size_t>(
      std::count_if(changes.begin(), changes.end(), [](const Change& c) { return c.mark == '-'; }));
  if (f.fail_on == "regression" && worse > 0) cli.exit_code = kExitDifference;
  if (cli.json) {
    ordered_json rows = ordered_json::array();
    for (const Change& c : changes) {
      const auto side = [&](const std::optional<Series>& s) {
        if (!s) return ordered_json();
        return ordered_json{
            {"median", s->median()}, {"n", s->values.size()}, {"method", s->method}, {"source", s->source}};
      };
      rows.push_back(
          {{"trial", c.name},
           {"workload", c.workload},
           {"device", c.device},
           {"variant", c.variant},
           {"seed", c.seed},
           {"differences", c.differences},
           {"before", side(c.before)},
           {"after", side(c.after)},
           {"ratio", c.ratio ? ordered_json(*c.ratio) : ordered_json()},
           {"interval", c.interval ? ordered_json{c.interval->low, c.interval->high} : ordered_json()},
           {"p", c.p ? ordered_json(*c.p) : ordered_json()},
           {"mark", std::string(1, c.mark)}});
    }
    return cli.print(ordered_json{{"schema", "stitchwork.experiment-comparison/1"},
                                  {"before", f.a},
                                  {"after", f.b},
                                  {"metric", f.metric},
                                  {"factor", f.factor},
                                  {"changes", rows},
                                  {"worse", worse}});
  }
  std::string text = comparison_text(changes, f);
  if (f.format == "table")
    for (const auto& [differences, trials] : differing_trials(changes))
      text += fmt::format("settings differ: {} ({} trial{})\n", differences, trials, trials == 1 ? "" : "s");
  if (f.format != "table") return cli.print(text.substr(0, text.size() - 1));
  cli.print(text +
            fmt::format("{}; + better, - worse by more than {}x, ~ within it, ? too few samples to say; "
                        "of the ratio a bootstrap 95 % interval, p of a Mann-Whitney U test",
                        f.metric, f.factor));
}

}  // namespace

void add_experiment_compare(CLI::App& experiment, Cli& cli) {
  CLI::App* command = experiment.add_subcommand("compare", "a metric of the same trials in two experiments");
  auto f = std::make_shared<CompareFlags>();
  command->add_option("A", f->a, "experiment before")->required();
  command->add_option("B", f->b, "experiment after")->required();
  command->add_option("--with", f->other_db, "store of B (default: the same)");
  command->add_option("--metric", f->metric, "compared")->capture_default_str();
  command->add_option("--factor", f->factor, "changes up to it are noise")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e9));
  command->add_option("--alpha", f->alpha, "significance of measured changes")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command->add_flag("--only-changed", f->only_changed, "leave out what is within the factor");
  command->add_flag("--mixed", f->mixed, "compare numbers of different methods all the same");
  command->add_option("--format", f->format, "table, md or csv (--json for all digits)")
      ->check(CLI::IsMember({"table", "md", "csv"}))
      ->capture_default_str();
  command->add_option("--fail-on", f->fail_on, "regression: exit with code 3 if a trial is worse")
      ->check(CLI::IsMember({"regression"}));
  add_db(*command, f->db);
  add_common(
      *command, cli,
      "  stitchwork experiment compare nightly nightly --db old.db --with new.db --fail-on regression");
  command->callback([&cli, f] { compare(cli, *f); });
}

}  // namespace stitchwork
