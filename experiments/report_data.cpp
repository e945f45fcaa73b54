#include "experiments/report_data.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analysis/planner.h"
#include "core/error.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

struct TrialRow {
  ReportTrial trial;
  std::string workload, device, model_sha256;
  std::int64_t attempt_id = 0, environment = 0, started_ns = 0, ended_ns = 0;
};

std::string options_text(const ordered_json& options) {
  std::string text;
  for (const auto& [knob, value] : options.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", knob, value.get<std::string>());
  return text;
}

std::vector<TrialRow> read_trials(sqlite3* db, const std::string& experiment) {
  Statement query(
      db,
      "SELECT trial.id, experiment.name, workload, variant, params_json, seed, attempt.id, attempt.n, "
      "status, COALESCE(reason,''), environment_id, started_ns, ended_ns "
      "FROM trial JOIN experiment ON experiment.id = experiment_id "
      "JOIN attempt ON attempt.trial_id = trial.id AND attempt.n = (SELECT MAX(n) FROM attempt AS a "
      "WHERE a.trial_id = trial.id AND a.status IN ('ok','failed')) "
      "WHERE ?1 = '' OR experiment.name = ?1 ORDER BY trial.id");
  query.bind(experiment);
  std::vector<TrialRow> rows;
  while (query.step()) {
    TrialRow row;
    ReportTrial& t = row.trial;
    t.id = query.integer(0);
    t.experiment = query.text(1);
    row.workload = query.text(2);
    t.planner = query.text(3);
    const ordered_json params = ordered_json::parse(query.text(4));
    row.device = params.value("device", "");
    row.model_sha256 = params.value("model_sha256", "");
    t.backend = params.value("backend", "");
    t.cache = params.value("cache", "");
    t.options = options_text(params.value("options", ordered_json::object()));
    t.edited_plan = params.value("edited_plan", false);
    t.seed = query.integer(5);
    row.attempt_id = query.integer(6);
    t.attempt = query.integer(7);
    t.ok = query.text(8) == "ok";
    t.reason = query.text(9);
    row.environment = query.integer(10);
    row.started_ns = query.integer(11);
    row.ended_ns = query.integer(12);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// How close to the hardware a method is: the one shown where a number was obtained in several ways.
int strength(const std::string& method) {
  const std::vector<std::string> order = {"modelled", "sampled", "simulated", "imported", "measured"};
  return static_cast<int>(std::find(order.begin(), order.end(), method) - order.begin());
}

void keep_strongest(std::map<std::string, ReportValue>& values, const std::string& name, ReportValue value) {
  auto [it, inserted] = values.try_emplace(name, value);
  if (!inserted && strength(value.method) > strength(it->second.method)) it->second = value;
}

void read_samples(sqlite3* db, TrialRow& row) {
  Statement query(db,
                  "SELECT name, median, method FROM v_summary JOIN metric_def ON metric_def.id = metric_id "
                  "WHERE attempt_id = ?");
  query.bind(row.attempt_id);
  while (query.step()) keep_strongest(row.trial.samples, query.text(0), {query.real(1), query.text(2)});
}

/// The first dimension of "[80,1,1]" times the others.
std::int64_t extent(const std::string& dims) {
  std::int64_t product = 1;
  for (const ordered_json& dim : ordered_json::parse(dims)) product *= dim.get<std::int64_t>();
  return product;
}

void read_kernels(sqlite3* db, TrialRow& row) {
  Statement kernels(
      db,
      "SELECT id, name, ops_json, schemes_json, grid_json, block_json, grid_barriers, regs, "
      "spill_bytes, smem_bytes, time_us, time_method FROM kernel WHERE attempt_id = ? ORDER BY ordinal");
  kernels.bind(row.attempt_id);
  while (kernels.step()) {
    ReportKernel k;
    k.name = kernels.text(1);
    const ordered_json schemes = ordered_json::parse(kernels.text(3));
    for (const ordered_json& op : ordered_json::parse(kernels.text(2))) {
      const auto name = op.get<std::string>();
      k.ops.emplace_back(name, schemes.value(name, ""));
    }
    k.grid = extent(kernels.text(4));
    k.block = extent(kernels.text(5));
    k.barriers = kernels.integer(6);
    k.registers = kernels.integer(7);
    if (!kernels.is_null(8)) k.spill_bytes = kernels.integer(8);
    k.shared_bytes = kernels.integer(9);
    k.time_us = {kernels.real(10), kernels.text(11)};
    Statement counters(db,
                       "SELECT name, value, method FROM counter JOIN metric_def ON metric_def.id = metric_id "
                       "WHERE kernel_id = ? ORDER BY name, method, tool");
    counters.bind(kernels.integer(0));
    while (counters.step())
      keep_strongest(k.counters, counters.text(0), {counters.real(1), counters.text(2)});
    row.trial.kernels.push_back(std::move(k));
  }
}

/// Where the planner stands in the table, so that baselines come first; unknown ones last.
std::size_t planner_rank(const std::string& name) {
  const std::span<const Planner> table = planners();
  return static_cast<std::size_t>(
      std::find_if(table.begin(), table.end(), [&](const Planner& p) { return p.name == name; }) -
      table.begin());
}

/// Adds to the labels what tells trials of one label apart: first what was asked for, in the end the trial's
/// number.
void label_trials(std::vector<ReportTrial>& trials) {
  for (ReportTrial& t : trials) {
    t.label = t.planner;
    if (!t.options.empty()) t.label += fmt::format(" ({})", t.options);
    if (t.edited_plan) t.label += ", plan from a file";
  }
  const std::vector<std::function<std::string(const ReportTrial&)>> parts = {
      [](const ReportTrial& t) { return t.cache + " cache"; },
      [](const ReportTrial& t) { return fmt::format("seed {}", t.seed); },
      [](const ReportTrial& t) { return t.backend; }, [](const ReportTrial& t) { return t.experiment; },
      [](const ReportTrial& t) { return fmt::format("trial {}", t.id); }};
  for (const auto& part : parts) {
    std::map<std::string, std::set<std::string>> seen;
    for (const ReportTrial& t : trials) seen[t.label].insert(part(t));
    for (ReportTrial& t : trials)
      if (seen.at(t.label).size() > 1) t.label += ", " + part(t);
  }
}

void check_experiment(sqlite3* db, const std::string& path, const std::string& experiment) {
  std::vector<std::string> known;
  Statement query(db, "SELECT DISTINCT name FROM experiment ORDER BY name");
  while (query.step()) known.push_back(query.text(0));
  if (experiment.empty() || std::find(known.begin(), known.end(), experiment) != known.end()) return;
  throw Error(
      path, 0, 0, fmt::format("has no experiment \"{}\"", experiment),
      known.empty() ? "it holds no experiments yet" : fmt::format("it has: {}", fmt::join(known, ", ")));
}

std::string environment_text(sqlite3* db, std::int64_t id) {
  Statement query(
      db,
      "SELECT app_version, git_commit, git_dirty, compiler, cuda, gpu_name, sm_arch, cpu, os, host "
      "FROM environment WHERE id = ?");
  query.bind(id).step();
  const std::string compiled =
      query.text(4).empty() ? "" : fmt::format("; kernels compiled by {}", query.text(4));
  return fmt::format("stitchwork {} ({}{}), built with {}{}; GPU {}, {}; CPU {}; {}; host {}", query.text(0),
                     query.text(1), query.integer(2) ? ", modified" : "", query.text(3), compiled,
                     query.text(5), query.text(6), query.text(7), query.text(8), query.text(9));
}

}  // namespace

std::vector<std::string> environments(const Store& store) {
  std::vector<std::int64_t> ids;
  Statement query(store.handle(), "SELECT DISTINCT environment_id FROM attempt ORDER BY environment_id");
  while (query.step()) ids.push_back(query.integer(0));
  std::vector<std::string> texts;
  for (const std::int64_t id : ids) texts.push_back(environment_text(store.handle(), id));
  return texts;
}

const ReportValue* ReportTrial::sample(const std::string& metric) const {
  const auto found = samples.find(metric);
  return found == samples.end() ? nullptr : &found->second;
}

std::optional<ReportValue> ReportTrial::total(const std::string& counter) const {
  std::optional<ReportValue> sum;
  for (const ReportKernel& k : kernels) {
    const auto found = k.counters.find(counter);
    if (found == k.counters.end()) continue;
    if (!sum) {
      sum = found->second;
    } else {
      sum->value += found->second.value;
      if (sum->method != found->second.method) sum->method = "mixed";
    }
  }
  return sum;
}

ReportData read_report(const Store& store, const std::string& experiment) {
  sqlite3* db = store.handle();
  check_experiment(db, store.path(), experiment);
  // One read transaction: a run recorded meanwhile is in the report as a whole or not at all.
  Transaction snapshot(db, "BEGIN");
  std::vector<TrialRow> rows = read_trials(db, experiment);
  ReportData data;
  std::set<std::int64_t> environments;
  std::set<std::string> experiments;
  std::map<std::tuple<std::string, std::string, std::string>, ReportSection> sections;
  for (TrialRow& row : rows) {
    read_samples(db, row);
    read_kernels(db, row);
    environments.insert(row.environment);
    experiments.insert(row.trial.experiment);
    data.first_ns = data.first_ns == 0 ? row.started_ns : std::min(data.first_ns, row.started_ns);
    data.last_ns = std::max(data.last_ns, row.ended_ns);
    ReportSection& section = sections[{row.workload, row.device, row.model_sha256}];
    section.workload = row.workload;
    section.device = row.device;
    section.model_sha256 = row.model_sha256;
    section.trials.push_back(std::move(row.trial));
  }
  for (std::int64_t id : environments) data.environments.push_back(environment_text(db, id));
  snapshot.commit();
  data.experiments.assign(experiments.begin(), experiments.end());
  for (auto& [key, section] : sections) {
    std::stable_sort(section.trials.begin(), section.trials.end(),
                     [](const ReportTrial& a, const ReportTrial& b) {
                       return planner_rank(a.planner) < planner_rank(b.planner);
                     });
    label_trials(section.trials);
    data.sections.push_back(std::move(section));
  }
  return data;
}

}  // namespace stitchwork
