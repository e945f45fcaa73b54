#include "experiments/results.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/error.h"
#include "experiments/metrics.h"
#include "experiments/sqlite.h"

namespace stitchwork {
namespace {

/// Samples a side below which nothing is said of measured numbers (airspeed velocity's rule of thumb).
constexpr std::size_t kFewSamples = 9;

using Key = std::tuple<std::string, std::string, std::string, std::int64_t>;
Key key_of(const TrialResults& t) { return {t.workload, t.device, t.variant, t.seed}; }

/// 1 where more of the metric is better, else -1.
int direction_of(const std::string& metric) {
  for (const Metric& m : metrics())
    if (m.name == metric) return m.direction > 0 ? 1 : -1;
  throw Error(fmt::format("no metric is called '{}'", metric),
              "see experiments/metrics.cpp; kernel_us, total_us and "
              "memory_kernels are some");
}

}  // namespace

double Series::median() const { return median_of(values); }

std::optional<double> TrialResults::median(const std::string& metric) const {
  const auto found = series.find(metric);
  if (found == series.end()) return std::nullopt;
  return found->second.median();
}

ExperimentResults read_results(const Store& store, const std::string& experiment) {
  sqlite3* db = store.handle();
  const Transaction snapshot(db, "BEGIN");
  std::vector<std::string> known;
  Statement names(db, "SELECT name FROM experiment GROUP BY name ORDER BY MIN(id)");
  while (names.step()) known.push_back(names.text(0));
  if (std::find(known.begin(), known.end(), experiment) == known.end())
    throw Error(store.path(), 0, 0, fmt::format("has no experiment \"{}\"", experiment),
                known.empty() ? std::string("it holds no experiments yet")
                              : fmt::format("it has: {}", fmt::join(known, ", ")));
  ExperimentResults results;
  results.name = experiment;
  std::map<Key, std::size_t> at;
  Statement attempts(
      db,
      "SELECT workload, json_extract(params_json,'$.device'), variant, seed, status, "
      "COALESCE(reason,''), attempt.id FROM attempt JOIN trial ON trial.id = trial_id JOIN experiment "
      "ON experiment.id = experiment_id WHERE experiment.name = ? ORDER BY attempt.id");
  attempts.bind(experiment);
  while (attempts.step()) {
    TrialResults trial;
    trial.workload = attempts.text(0);
    trial.device = attempts.text(1);
    trial.variant = attempts.text(2);
    trial.seed = attempts.integer(3);
    const auto [known_at, fresh] = at.emplace(key_of(trial), results.trials.size());
    if (fresh) results.trials.push_back(std::move(trial));
    TrialResults& into = results.trials[known_at->second];
    into.status = attempts.text(4);
    into.reason = attempts.text(5);
    if (into.status != "ok") continue;
    Statement samples(db,
                      "SELECT name, value, method FROM sample JOIN metric_def ON metric_def.id = metric_id "
                      "WHERE attempt_id = ? AND is_nan = 0 ORDER BY metric_id, round, idx");
    samples.bind(attempts.integer(6));
    while (samples.step()) {
      Series& series = into.series[samples.text(0)];
      series.method = samples.text(2);
      series.values.push_back(samples.real(1));
    }
    // Counters, which kernels have, by their sum.
    Statement counters(
        db,
        "SELECT metric_def.name, SUM(counter.value), MIN(counter.method), MAX(counter.method) FROM "
        "counter JOIN kernel ON kernel.id = kernel_id JOIN metric_def ON metric_def.id = metric_id WHERE "
        "attempt_id = ? AND unit <> '1' GROUP BY metric_id ORDER BY metric_id");
    counters.bind(attempts.integer(6));
    while (counters.step()) {
      // A sum over kernels that were sampled and others, too small for it, that were run whole is sampled;
      // over other methods it is not one number.
      const bool sampled = counters.text(2) == "sampled" && counters.text(3) == "simulated";
      if (!sampled && counters.text(2) != counters.text(3)) continue;
      Series& series = into.series[counters.text(0)];
      series.method = counters.text(2);
      series.values.push_back(counters.real(1));
    }
  }
  for (const TrialResults& trial : results.trials)
    if (std::find(results.variants.begin(), results.variants.end(), trial.variant) == results.variants.end())
      results.variants.push_back(trial.variant);
  return results;
}

std::vector<KernelResult> read_kernels(const Store& store, const std::string& experiment,
                                       const std::string& workload, const std::string& variant) {
  sqlite3* db = store.handle();
  Statement rows(
      db,
      "SELECT kernel.id, kernel.name, kernel.time_us, metric_def.name, counter.value, counter.method, "
      "grid_json, block_json, grid_barriers FROM "
      "kernel LEFT JOIN counter ON kernel_id = kernel.id LEFT JOIN metric_def ON metric_def.id = metric_id "
      "WHERE attempt_id = (SELECT MAX(attempt.id) FROM attempt JOIN trial ON trial.id = trial_id JOIN "
      "experiment ON experiment.id = experiment_id WHERE experiment.name = ? AND workload = ? AND variant = "
      "? "
      "AND status = 'ok') ORDER BY kernel.time_us DESC, kernel.ordinal, metric_id");
  rows.bind(experiment).bind(workload).bind(variant);
  std::vector<KernelResult> kernels;
  std::int64_t last = -1;
  while (rows.step()) {
    if (rows.integer(0) != last) {
      last = rows.integer(0);
      KernelResult& kernel = kernels.emplace_back();
      kernel.name = rows.text(1);
      kernel.time_us = rows.real(2);
      kernel.grid = rows.text(6);
      kernel.block = rows.text(7);
      kernel.grid_barriers = rows.integer(8);
    }
    if (!rows.is_null(3) && !rows.is_null(4))
      kernels.back().counters[rows.text(3)] = {rows.text(5), {rows.real(4)}};
  }
  return kernels;
}

std::vector<ExperimentEntry> list_experiments(const Store& store) {
  Statement query(
      store.handle(),
      "WITH last AS (SELECT trial_id, status, MAX(id) AS id, MAX(ended_ns) AS ended FROM attempt GROUP BY "
      "trial_id) SELECT experiment.name, COUNT(trial.id), SUM(last.status = 'ok'), SUM(last.status <> "
      "'ok'), COALESCE(MAX(last.ended),0) FROM experiment LEFT JOIN trial ON trial.experiment_id = "
      "experiment.id LEFT JOIN last ON last.trial_id = trial.id GROUP BY experiment.name ORDER BY "
      "MIN(experiment.id)");
  std::vector<ExperimentEntry> entries;
  while (query.step())
    entries.push_back(
        {query.text(0), query.integer(1), query.integer(2), query.integer(3), query.integer(4)});
  return entries;
}

Ablation ablate(const ExperimentResults& results, const std::string& base, const std::string& metric) {
  const int direction = direction_of(metric);
  if (std::find(results.variants.begin(), results.variants.end(), base) == results.variants.end())
    throw Error(fmt::format("experiment {} has no variant \"{}\"", results.name, base),
                fmt::format("it has: {}", fmt::join(results.variants, ", ")));
  Ablation ablation;
  ablation.metric = metric;
  ablation.base = base;
  ablation.variants = {base};
  for (const std::string& variant : results.variants)
    if (variant != base) ablation.variants.push_back(variant);
  std::set<std::string> methods;
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::size_t> at;
  std::vector<std::vector<std::optional<double>>> medians;
  for (const TrialResults& trial : results.trials) {
    const auto [known, fresh] =
        at.try_emplace({trial.workload, trial.device, trial.seed}, ablation.rows.size());
    if (fresh) {
      ablation.rows.push_back({trial.workload, trial.device, trial.seed, {}});
      medians.emplace_back(ablation.variants.size());
    }
    const auto variant = std::find(ablation.variants.begin(), ablation.variants.end(), trial.variant);
    medians[known->second][static_cast<std::size_t>(variant - ablation.variants.begin())] =
        trial.median(metric);
    if (const auto series = trial.series.find(metric); series != trial.series.end())
      methods.insert(series->second.method);
  }
  ablation.methods.assign(methods.begin(), methods.end());
  std::vector<double> logarithms(ablation.variants.size(), 0);
  std::size_t whole = 0;
  for (std::size_t r = 0; r < ablation.rows.size(); ++r) {
    std::vector<std::optional<double>>& ratios = ablation.rows[r].ratios;
    for (const std::optional<double>& value : medians[r]) {
      const bool both = medians[r][0] && value && *value > 0;
      const double less = both ? *medians[r][0] / *value : 0;
      ratios.push_back(both ? std::optional(direction < 0 ? less : 1 / less) : std::nullopt);
    }
    const bool all = std::all_of(ratios.begin(), ratios.end(), [](const auto& x) { return x && *x > 0; });
    if (!all) continue;
    ++whole;
    for (std::size_t v = 0; v < ratios.size(); ++v) logarithms[v] += std::log(*ratios[v]);
  }
  for (const double sum : logarithms)
    ablation.geometric_means.push_back(
        whole == 0 ? std::nullopt : std::optional(std::exp(sum / static_cast<double>(whole))));
  return ablation;
}

std::vector<Change> compare_results(const ExperimentResults& before, const ExperimentResults& after,
                                    const std::string& metric, double factor, double alpha, bool mixed) {
  const int direction = direction_of(metric);
  std::vector<Change> changes;
  std::map<Key, std::size_t> at;
  const auto add = [&](const TrialResults& trial, std::optional<Series> Change::*side) {
    const auto [known, fresh] = at.emplace(key_of(trial), changes.size());
    if (fresh) {
      Change& change = changes.emplace_back();
      change.workload = trial.workload;
      change.device = trial.device;
      change.variant = trial.variant;
      change.seed = trial.seed;
    }
    if (const auto series = trial.series.find(metric); series != trial.series.end())
      changes[known->second].*side = series->second;
  };
  for (const TrialResults& trial : before.trials) add(trial, &Change::before);
  for (const TrialResults& trial : after.trials) add(trial, &Change::after);
  for (Change& change : changes) {
    if (!change.before || !change.after) continue;
    if (change.before->method != change.after->method && !mixed)
      throw Error(fmt::format("{} of {} is {} in one and {} in the other", metric, change.workload,
                              change.before->method, change.after->method),
                  "numbers of different methods are compared only with --mixed");
    const double old_median = change.before->median(), new_median = change.after->median();
    if (!(old_median > 0)) {
      if (new_median == old_median) change.mark = '~';
      continue;
    }
    change.ratio = new_median / old_median;
    const std::vector<double>&was = change.before->values, &is = change.after->values;
    change.interval = ratio_interval(was, is);
    if (std::min(was.size(), is.size()) > 1) change.p = mann_whitney_p(was, is);
    const bool same = *change.ratio <= factor && *change.ratio >= 1 / factor;
    change.mark = same ? '~' : (*change.ratio < 1) == (direction < 0) ? '+' : '-';
    if (same || change.after->method != "measured") continue;
    if (std::min(was.size(), is.size()) < kFewSamples || *change.p > alpha) change.mark = '?';
  }
  return changes;
}

}  // namespace stitchwork
