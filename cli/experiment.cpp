// stitchwork experiment run | list | show | ablate | compare | merge | export
#include "cli/experiment.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/cli.h"
#include "cli/table.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/format.h"
#include "core/base/suggest.h"
#include "experiments/comparison.h"
#include "experiments/merge.h"
#include "experiments/runner.h"
#include "figures/data/forms.h"

namespace stitchwork {

Store open_store(const std::string& given) {
  const std::string db = given.empty() ? default_store_path() : given;
  if (!std::filesystem::exists(db))
    throw Error(db, 0, 0, "no such store", "make one: stitchwork experiment run SPEC --db FILE");
  return Store::open(db);
}

void add_db(CLI::App& command, std::string& db) {
  command.add_option("--db", db, "store (default ${XDG_DATA_HOME:-~/.local/share}/stitchwork/runs.db)");
}

namespace {

using nlohmann::ordered_json;

std::string number(const std::optional<double>& value, int digits = 2) {
  if (!value) return "-";
  if (*value == std::floor(*value) && std::abs(*value) < 1e15)
    return with_commas(static_cast<long long>(*value));
  return fmt::format("{:.{}f}", *value, digits);
}

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
      value = series == nullptr ? t.status : number(series->median());
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
    return number(series ? std::optional(series->median()) : std::nullopt);
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
  {
    CLI::App* command =
        experiment->add_subcommand("run", "carry out an experiment's trials; those that are ok are kept");
    auto a = std::make_shared<RunFlags>();
    command->add_option("SPEC", a->spec, "JSON (docs/experiments.md)")->required();
    add_db(*command, a->db);
    command->add_option("--rerun", a->rerun, "trials that have an attempt: none, failed or all of them again")
        ->capture_default_str()
        ->check(CLI::IsMember({"none", "failed", "all"}));
    command
        ->add_option("--rounds", a->rounds, "attempts that each trial shall have; those in the store count")
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
  {
    CLI::App* command = experiment->add_subcommand("list", "the experiments of a store");
    auto db = std::make_shared<std::string>();
    add_db(*command, *db);
    add_common(*command, cli, "  stitchwork experiment list --db runs.db");
    command->callback([&cli, db] { list(cli, *db); });
  }
  {
    CLI::App* command = experiment->add_subcommand("show", "an experiment's numbers, a row a workload");
    auto db = std::make_shared<std::string>(), name = std::make_shared<std::string>();
    auto metrics = std::make_shared<std::vector<std::string>>(
        std::vector<std::string>{"memory_kernels", "kernel_us", "total_us"});
    command->add_option("NAME", *name, "of the experiment")->required();
    command->add_option("--metric", *metrics, "comma-separated")->delimiter(',')->capture_default_str();
    add_db(*command, *db);
    add_common(*command, cli, "  stitchwork experiment show astitch-models --metric memory_kernels,total_us");
    command->callback([&cli, db, name, metrics] { show(cli, *db, *name, *metrics); });
  }
  {
    CLI::App* command = experiment->add_subcommand("ablate", "how much better each variant is than a base");
    auto db = std::make_shared<std::string>(), name = std::make_shared<std::string>(),
         base = std::make_shared<std::string>(), metric = std::make_shared<std::string>("total_us");
    command->add_option("NAME", *name, "of the experiment")->required();
    command->add_option("--base", *base, "variant that the others are compared with")->required();
    command->add_option("--metric", *metric, "compared")->capture_default_str();
    add_db(*command, *db);
    add_common(*command, cli, "  stitchwork experiment ablate astitch-models --base XLA --metric kernel_us");
    command->callback([&cli, db, name, base, metric] { ablate_command(cli, *db, *name, *base, *metric); });
  }
  {
    CLI::App* command =
        experiment->add_subcommand("compare", "a metric of the same trials in two experiments");
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
  {
    CLI::App* command = experiment->add_subcommand("export", "all numbers of an experiment");
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
    command->callback(
        [&cli, db, name, format, output] { export_results(cli, *db, *name, *format, *output); });
  }
}

}  // namespace stitchwork
