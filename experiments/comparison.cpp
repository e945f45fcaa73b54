#include "experiments/comparison.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "experiments/metrics.h"

namespace stitchwork {
namespace {

/// Samples a side below which nothing is said of measured numbers (airspeed velocity's rule of thumb).
constexpr std::size_t kFewSamples = 9;

/// 1 where more of the metric is better, else -1.
int direction_of(const std::string& metric) {
  for (const Metric& m : metrics())
    if (m.name == metric) return m.direction > 0 ? 1 : -1;
  throw Error(fmt::format("no metric is called '{}'", metric),
              "see experiments/metrics.cpp; kernel_us, total_us and "
              "memory_kernels are some");
}

/// Of one workload, variant, device and seed.
using Group = std::tuple<std::string, std::string, std::string, std::int64_t>;
Group group_of(const TrialResults& t) { return {t.workload, t.variant, t.device, t.seed}; }

std::map<Group, std::vector<const TrialResults*>> groups(const std::vector<TrialResults>& trials) {
  std::map<Group, std::vector<const TrialResults*>> found;
  for (const TrialResults& trial : trials) found[group_of(trial)].push_back(&trial);
  return found;
}

std::set<std::string> differing(const std::vector<const TrialResults*>& trials) {
  std::vector<TrialResults> identities;
  for (const TrialResults* trial : trials) {
    TrialResults& one = identities.emplace_back();  // without its numbers
    one.settings = trial->settings;
    one.seed = trial->seed;
  }
  return differing_settings(identities);
}

/// The settings in which two trials that are compared differ.
std::string differences(const TrialResults& before, const TrialResults& after) {
  std::set<std::string> names;
  for (const TrialResults* trial : {&before, &after})
    for (const auto& [name, value] : trial->settings) names.insert(name);
  std::string text;
  const auto shown = [](const std::string& value) { return value.empty() ? std::string("-") : value; };
  for (const std::string& name : names)
    if (before.setting(name) != after.setting(name))
      text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", name, shown(before.setting(name)),
                          shown(after.setting(name)));
  return text;
}

/// Pairs of the same trial, in the order of `before`, then what is only after.
std::vector<Change> pairs(const ExperimentResults& before, const ExperimentResults& after,
                          const std::string& metric) {
  const auto old_groups = groups(before.trials), new_groups = groups(after.trials);
  std::map<Group, std::set<std::string>> named;
  for (const auto* side : {&old_groups, &new_groups})
    for (const auto& [group, trials] : *side) named[group].merge(differing(trials));
  std::vector<Change> changes;
  std::map<std::tuple<Group, std::string, std::string>, std::pair<std::size_t, const TrialResults*>> at;
  const auto add = [&](const std::vector<TrialResults>& trials, std::optional<Series> Change::*side) {
    std::map<std::pair<Group, std::string>, int> there;
    std::vector<std::string> texts;
    for (const TrialResults& trial : trials) {
      std::string text;
      for (const std::string& setting : named.at(group_of(trial)))
        text += setting_text(setting, trial.setting(setting));
      ++there[{group_of(trial), text}];
      texts.push_back(std::move(text));
    }
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const TrialResults& trial = trials[i];
      // Settings that an earlier version of the store kept in the key alone.
      const bool alone = there.at({group_of(trial), texts[i]}) == 1;
      const auto [known, fresh] =
          at.try_emplace({group_of(trial), texts[i], alone ? "" : trial.key}, changes.size(), &trial);
      if (fresh) {
        Change& change = changes.emplace_back();
        change.name = trial.workload + texts[i] + (alone ? "" : ", trial " + trial.key.substr(0, 8));
        change.workload = trial.workload;
        change.device = trial.device;
        change.variant = trial.variant;
        change.seed = trial.seed;
      } else {
        changes[known->second.first].differences = differences(*known->second.second, trial);
      }
      if (const Series* found = trial.find(metric)) changes[known->second.first].*side = *found;
    }
  };
  add(before.trials, &Change::before);
  add(after.trials, &Change::after);
  return changes;
}

}  // namespace

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
  std::map<std::string, std::size_t> at;
  std::vector<std::vector<std::optional<double>>> medians;
  const std::vector<std::string> names = row_names(results.trials);
  for (std::size_t i = 0; i < results.trials.size(); ++i) {
    const TrialResults& trial = results.trials[i];
    const auto [known, fresh] = at.try_emplace(names[i], ablation.rows.size());
    if (fresh) {
      ablation.rows.push_back({names[i], trial.workload, trial.device, trial.seed, {}});
      medians.emplace_back(ablation.variants.size());
    }
    const auto variant = std::find(ablation.variants.begin(), ablation.variants.end(), trial.variant);
    medians[known->second][static_cast<std::size_t>(variant - ablation.variants.begin())] =
        trial.median(metric);
    if (const Series* series = trial.find(metric)) methods.insert(series->method);
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
  std::vector<Change> changes = pairs(before, after, metric);
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
    if (same || !change.after->method.starts_with("measured")) continue;
    if (std::min(was.size(), is.size()) < kFewSamples || *change.p > alpha) change.mark = '?';
  }
  return changes;
}

}  // namespace stitchwork
