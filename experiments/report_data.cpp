#include "experiments/report_data.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "analysis/planners/planner.h"
#include "core/base/error.h"

namespace stitchwork {
namespace {

std::string options_text(const Settings& settings) {
  constexpr std::string_view kOption = "options.";
  std::string text;
  for (const auto& [name, value] : settings)
    if (name.starts_with(kOption))
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name.substr(kOption.size()), value);
  return text;
}

/// The slowest, in their order.
void keep_slowest(std::vector<ReportKernel>& kernels, std::size_t most) {
  if (most == 0 || kernels.size() <= most) return;
  std::vector<double> times;
  for (const ReportKernel& k : kernels) times.push_back(k.time_us.value);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(most - 1), times.end(),
                   std::greater<>());
  const double least = times[most - 1];
  auto ties = static_cast<std::ptrdiff_t>(most) -
              std::count_if(kernels.begin(), kernels.end(),
                            [&](const ReportKernel& k) { return k.time_us.value > least; });
  std::erase_if(kernels, [&](const ReportKernel& k) {
    return k.time_us.value < least || (k.time_us.value == least && ties-- <= 0);
  });
}

ReportTrial trial_of(const Store& store, const TrialResults& found, std::size_t kernels) {
  ReportTrial t;
  t.id = found.id;
  t.key = found.key;
  t.experiment = found.experiment;
  t.planner = found.variant;
  t.options = options_text(found.settings);
  t.backend = found.setting("backend");
  t.seed = found.seed;
  t.settings = found.settings;
  t.ok = found.status == "ok";
  t.reason = found.reason;
  t.attempt = found.attempts;
  t.kernels = read_kernels(store, found);
  const auto is_counter = [&](const std::string& metric) {
    return std::any_of(t.kernels.begin(), t.kernels.end(),
                       [&](const ReportKernel& k) { return k.counters.contains(metric); });
  };
  for (const auto& [metric, all] : found.series) {
    const Series& series = *found.find(metric);
    (is_counter(metric) ? t.totals : t.samples)[metric] = {series.median(), series.method};
  }
  t.kernel_count = t.kernels.size();
  for (const ReportKernel& k : t.kernels) t.kernels_us += k.time_us.value;
  keep_slowest(t.kernels, kernels);
  return t;
}

/// Where the planner stands in the table, so that baselines come first; unknown ones last.
std::size_t planner_rank(const std::string& name) {
  const std::span<const Planner> table = planners();
  return static_cast<std::size_t>(
      std::find_if(table.begin(), table.end(), [&](const Planner& p) { return p.name == name; }) -
      table.begin());
}

/// Adds to the labels what tells trials of one label apart: one setting after the other, in the end the
/// experiment and the trial's key.
void label_trials(std::vector<ReportTrial>& trials) {
  using Part = std::function<std::string(const ReportTrial&)>;
  std::vector<std::string> names = {"cache", "seed", "backend", "mode"};
  std::set<std::string> others;
  for (const ReportTrial& t : trials)
    for (const auto& [name, value] : t.settings)
      if (std::find(names.begin(), names.end(), name) == names.end()) others.insert(name);
  names.insert(names.end(), others.begin(), others.end());
  std::vector<Part> parts;
  for (const std::string& name : names)
    parts.emplace_back([name](const ReportTrial& t) {
      if (name == "seed") return fmt::format(", seed {}", t.seed);
      const auto found = t.settings.find(name);
      if (found == t.settings.end()) return std::string();
      if (name == "cache") return fmt::format(", {} cache", found->second);
      if (name == "backend" || name == "mode") return ", " + found->second;
      return setting_text(name, found->second);
    });
  parts.emplace_back([](const ReportTrial& t) { return ", " + t.experiment; });
  parts.emplace_back([](const ReportTrial& t) { return ", trial " + t.key.substr(0, 8); });
  for (ReportTrial& t : trials) {
    t.label = t.planner;
    if (!t.options.empty()) t.label += fmt::format(" ({})", t.options);
  }
  for (const Part& part : parts) {
    std::map<std::string, std::set<std::string>> seen;
    for (const ReportTrial& t : trials) seen[t.label].insert(part(t));
    for (ReportTrial& t : trials)
      if (seen.at(t.label).size() > 1) t.label += part(t);
  }
}

}  // namespace

const ReportValue* ReportTrial::sample(const std::string& metric) const {
  const auto found = samples.find(metric);
  return found == samples.end() ? nullptr : &found->second;
}

std::optional<ReportValue> ReportTrial::total(const std::string& counter) const {
  const auto found = totals.find(counter);
  return found == totals.end() ? std::nullopt : std::optional(found->second);
}

std::size_t usual_kernels(std::size_t trials) {
  // A choice, not measured: rows that browsers show at once; of a trial enough to see what is slow.
  constexpr std::size_t kRows = 2000, kLeast = 3;
  return std::max(kLeast, kRows / std::max<std::size_t>(1, trials));
}

ReportData read_report(const Store& store, const std::string& experiment,
                       std::optional<std::size_t> kernels) {
  ReportData data;
  std::set<std::int64_t> environments;
  std::set<std::string> experiments;
  std::map<std::tuple<std::string, std::string, std::string>, ReportSection> sections;
  const std::vector<TrialResults> trials = read_results(store, experiment).trials;
  const std::size_t most = kernels.value_or(usual_kernels(trials.size()));
  for (const TrialResults& found : trials) {
    environments.insert(found.environments.begin(), found.environments.end());
    experiments.insert(found.experiment);
    data.first_ns = data.first_ns == 0 ? found.first_ns : std::min(data.first_ns, found.first_ns);
    data.last_ns = std::max(data.last_ns, found.last_ns);
    ReportSection& section = sections[{found.workload, found.device, found.setting("model_sha256")}];
    section.workload = found.workload;
    section.device = found.device;
    section.model_sha256 = found.setting("model_sha256");
    section.trials.push_back(trial_of(store, found, most));
  }
  for (const std::int64_t id : environments)
    data.environments.push_back(environment_text(store.handle(), id));
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
