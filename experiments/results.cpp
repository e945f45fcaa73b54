#include "experiments/results.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

/// Hexadecimal digits of a hash that are shown.
constexpr std::size_t kKeyDigits = 8;

void require_experiment(const Store& store, const std::string& experiment) {
  const std::vector<std::string> known = experiment_names(store);
  if (experiment.empty() || std::find(known.begin(), known.end(), experiment) != known.end()) return;
  throw Error(store.path(), 0, 0, fmt::format("has no experiment \"{}\"", experiment),
              known.empty() ? std::string("it holds no experiments yet")
                            : fmt::format("it has: {}", fmt::join(known, ", ")));
}

std::vector<TrialResults> trials_of(sqlite3* db, const std::string& experiment) {
  Statement attempts(
      db,
      "SELECT trial_id, trial_key, experiment, workload, device, variant, seed, params, status, "
      "COALESCE(reason,''), attempt_id, started_ns, ended_ns, environment_id FROM attempts "
      "WHERE ?1 = '' OR experiment = ?1 ORDER BY attempt_id");
  attempts.bind(experiment);
  std::vector<TrialResults> trials;
  // Keys of stores from before version 4 do not tell variants and workloads of equal content apart.
  std::map<std::array<std::string, 4>, std::size_t> at;
  while (attempts.step()) {
    const auto [known, fresh] = at.try_emplace(
        {attempts.text(2), attempts.text(1), attempts.text(3), attempts.text(5)}, trials.size());
    if (fresh) {
      TrialResults& trial = trials.emplace_back();
      trial.id = attempts.integer(0);
      trial.key = attempts.text(1);
      trial.experiment = attempts.text(2);
      trial.workload = attempts.text(3);
      trial.device = attempts.text(4);
      trial.variant = attempts.text(5);
      trial.seed = attempts.integer(6);
      trial.settings = settings_of(ordered_json::parse(attempts.text(7)));
      trial.first_ns = attempts.integer(11);
    }
    TrialResults& trial = trials[known->second];
    ++trial.attempts;
    trial.status = attempts.text(8);
    trial.reason = attempts.text(9);
    trial.last_ns = attempts.integer(12);
    trial.environments.insert(attempts.integer(13));
    if (trial.status == "ok") trial.ok_attempts.push_back(attempts.integer(10));
  }
  return trials;
}

void read_series(sqlite3* db, TrialResults& trial) {
  for (const std::int64_t attempt : trial.ok_attempts) {
    Statement values(db, "SELECT metric, method, source, value FROM series WHERE attempt_id = ?");
    values.bind(attempt);
    while (values.step()) {
      std::vector<Series>& all = trial.series[values.text(0)];
      const auto one = std::find_if(all.begin(), all.end(), [&](const Series& s) {
        return s.method == values.text(1) && s.source == values.text(2);
      });
      if (one == all.end())
        all.push_back({values.text(1), values.text(2), {}});
      else
        std::rotate(one, one + 1, all.end());  // the latest source comes last: find() takes it
      all.back().values.push_back(values.real(3));
    }
  }
}

/// The product of "[80,1,1]".
std::int64_t extent(const std::string& dims) {
  std::int64_t product = 1;
  for (const ordered_json& dim : ordered_json::parse(dims)) product *= dim.get<std::int64_t>();
  return product;
}

KernelResult kernel_of(const Statement& row) {
  KernelResult k;
  k.name = row.text(1);
  const ordered_json schemes = ordered_json::parse(row.text(3));
  for (const ordered_json& op : ordered_json::parse(row.text(2))) {
    const auto name = op.get<std::string>();
    k.ops.emplace_back(name, schemes.value(name, ""));
  }
  k.grid = extent(row.text(4));
  k.block = extent(row.text(5));
  k.barriers = row.integer(6);
  k.registers = row.integer(7);
  if (!row.is_null(8)) k.spill_bytes = row.integer(8);
  k.shared_bytes = row.integer(9);
  k.time_us = {row.real(10), row.text(11)};
  return k;
}

}  // namespace

double Series::median() const { return median_of(values); }

int strength(const std::string& method) {
  constexpr std::array<std::string_view, 5> kOrder = {"modelled", "sampled", "simulated", "imported",
                                                      "measured"};
  const std::string_view first = std::string_view(method).substr(0, method.find(" + "));
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), first) - kOrder.begin());
}

std::string made_of(const std::set<std::string>& methods) {
  constexpr std::string_view kPlus = " + ";
  std::set<std::string> parts;
  for (std::string rest : methods)
    for (bool more = true; more;) {
      const std::size_t plus = rest.find(kPlus);
      parts.insert(rest.substr(0, plus));
      more = plus != std::string::npos;
      if (more) rest.erase(0, plus + kPlus.size());
    }
  std::vector<std::string> ordered(parts.begin(), parts.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const std::string& a, const std::string& b) { return strength(a) > strength(b); });
  return fmt::format("{}", fmt::join(ordered, kPlus));
}

const Series* TrialResults::find(const std::string& metric) const {
  const auto found = series.find(metric);
  if (found == series.end() || found->second.empty()) return nullptr;
  const Series* best = &found->second.front();
  for (const Series& one : found->second)
    if (strength(one.method) >= strength(best->method)) best = &one;
  return best;
}

std::optional<double> TrialResults::median(const std::string& metric) const {
  const Series* found = find(metric);
  return found == nullptr ? std::nullopt : std::optional(found->median());
}

const std::string& TrialResults::setting(const std::string& name) const {
  static const std::string nothing;
  const auto found = settings.find(name);
  return found == settings.end() ? nothing : found->second;
}

std::vector<std::string> experiment_names(const Store& store) {
  std::vector<std::string> names;
  Statement query(store.handle(), "SELECT name FROM experiment GROUP BY name ORDER BY MIN(id)");
  while (query.step()) names.push_back(query.text(0));
  return names;
}

std::vector<TrialResults> read_trials(const Store& store, const std::string& experiment) {
  require_experiment(store, experiment);
  return trials_of(store.handle(), experiment);
}

ExperimentResults read_results(const Store& store, const std::string& experiment) {
  require_experiment(store, experiment);
  sqlite3* db = store.handle();
  // One read transaction: a run recorded meanwhile is there as a whole or not at all.
  const Transaction snapshot(db, "BEGIN");
  ExperimentResults results{experiment, trials_of(db, experiment), {}};
  for (TrialResults& trial : results.trials) {
    read_series(db, trial);
    if (std::find(results.variants.begin(), results.variants.end(), trial.variant) == results.variants.end())
      results.variants.push_back(trial.variant);
  }
  return results;
}

std::vector<KernelResult> read_kernels(const Store& store, const TrialResults& trial) {
  std::vector<KernelResult> kernels;
  if (trial.ok_attempts.empty()) return kernels;
  Statement rows(
      store.handle(),
      "SELECT kernel.id, kernel.name, ops_json, schemes_json, grid_json, block_json, grid_barriers, "
      "regs, spill_bytes, smem_bytes, time_us, time_method, metric_def.name, counter.value, "
      "counter.method FROM kernel LEFT JOIN counter ON kernel_id = kernel.id LEFT JOIN metric_def ON "
      "metric_def.id = metric_id WHERE attempt_id = ? ORDER BY ordinal, metric_id, counter.tool");
  rows.bind(trial.ok_attempts.back());
  std::int64_t last = -1;
  while (rows.step()) {
    if (rows.integer(0) != last) {
      last = rows.integer(0);
      kernels.push_back(kernel_of(rows));
    }
    if (rows.is_null(12) || rows.is_null(13)) continue;
    const ResultValue value{rows.real(13), rows.text(14)};
    const auto [known, fresh] = kernels.back().counters.try_emplace(rows.text(12), value);
    if (!fresh && strength(value.method) > strength(known->second.method)) known->second = value;
  }
  return kernels;
}

std::vector<KernelResult> longest_first(std::vector<KernelResult> kernels) {
  std::stable_sort(kernels.begin(), kernels.end(), [](const KernelResult& a, const KernelResult& b) {
    return a.time_us.value > b.time_us.value;
  });
  return kernels;
}

std::set<std::string> differing_settings(const std::vector<TrialResults>& trials) {
  std::map<std::pair<std::string, std::string>, const TrialResults*> first;  // by workload, variant
  std::set<std::string> differing;
  for (const TrialResults& trial : trials) {
    const TrialResults& other = *first.try_emplace({trial.workload, trial.variant}, &trial).first->second;
    for (const auto* settings : {&trial.settings, &other.settings})
      for (const auto& [name, value] : *settings)
        if (trial.setting(name) != other.setting(name)) differing.insert(name);
    if (trial.device != other.device) differing.insert("device");
    if (trial.seed != other.seed) differing.insert("seed");
  }
  return differing;
}

std::vector<std::string> row_names(const std::vector<TrialResults>& trials) {
  const std::set<std::string> named = differing_settings(trials);
  std::vector<std::string> names;
  std::map<std::pair<std::string, std::string>, int> there;  // by name, variant
  for (const TrialResults& trial : trials) {
    std::string name = trial.workload;
    if (named.contains("device")) name += setting_text("device", trial.device);
    if (named.contains("seed")) name += setting_text("seed", std::to_string(trial.seed));
    for (const std::string& setting : named)
      if (setting != "device" && setting != "seed") name += setting_text(setting, trial.setting(setting));
    ++there[{name, trial.variant}];
    names.push_back(std::move(name));
  }
  // Stores of earlier versions keep some settings in the key alone.
  for (std::size_t i = 0; i < trials.size(); ++i)
    if (there.at({names[i], trials[i].variant}) > 1)
      names[i] += ", trial " + trials[i].key.substr(0, kKeyDigits);
  return names;
}

std::vector<ExperimentEntry> list_experiments(const Store& store) {
  std::vector<ExperimentEntry> entries;
  for (const std::string& name : experiment_names(store)) {
    ExperimentEntry& entry = entries.emplace_back();
    entry.name = name;
    for (const TrialResults& trial : trials_of(store.handle(), name)) {
      ++entry.trials;
      ++(trial.status == "ok" ? entry.ok : entry.failed);
      entry.last_ns = std::max(entry.last_ns, trial.last_ns);
    }
  }
  return entries;
}

}  // namespace stitchwork
