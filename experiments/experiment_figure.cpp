#include "experiments/experiment_figure.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/version.h"
#include "experiments/metrics.h"

namespace stitchwork {
namespace {

/// Groups of bars that fit a column's width, as in reproductions (experiments/reproduce_figures.cpp).
constexpr std::size_t kColumnCategories = 9;

std::string unit_of(const std::string& metric) {
  for (const Metric& m : metrics())
    if (m.name == metric) return m.unit == "1" ? "" : std::string(m.unit);
  throw Error(fmt::format("no metric is called '{}'", metric),
              "kernel_us, total_us and memory_kernels are some; docs/store.md names them all");
}

/// A file's name: letters, digits, dots and dashes.
std::string file_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_') c = '-';
  return text;
}

}  // namespace

int planner_style(const std::string& variant) {
  constexpr auto kSlots = std::to_array<std::pair<std::string_view, int>>({{"unfused", 0},
                                                                           {"xla", 1},
                                                                           {"xla+atm", 2},
                                                                           {"atm", 2},
                                                                           {"hdm", 3},
                                                                           {"astitch", 4},
                                                                           {"tvm", 5},
                                                                           {"auto", 7}});
  std::string lower = variant;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [name, slot] : kSlots)
    if (lower == name) return slot;
  return -1;
}

Figure experiment_figure(const ExperimentResults& results, const std::string& metric) {
  const std::string unit = unit_of(metric);
  Figure figure;
  figure.id = file_name(results.name + "_" + metric);
  figure.title = fmt::format("{}: {}", results.name, metric);
  std::set<std::string> devices;
  for (const TrialResults& trial : results.trials) devices.insert(trial.device);
  const std::vector<std::string> rows = row_names(results.trials);
  for (const std::string& row : rows)
    if (std::find(figure.categories.begin(), figure.categories.end(), row) == figure.categories.end())
      figure.categories.push_back(row);
  for (const std::string& variant : results.variants) {
    FigureSeries series;
    series.name = variant;
    series.style = planner_style(variant);
    series.y.resize(figure.categories.size());
    series.interval.resize(figure.categories.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const TrialResults& trial = results.trials[i];
      const Series* found = trial.find(metric);
      if (trial.variant != variant || found == nullptr) continue;
      const auto at = static_cast<std::size_t>(
          std::find(figure.categories.begin(), figure.categories.end(), rows[i]) - figure.categories.begin());
      if (series.method.find(found->method) == std::string::npos)
        series.method += (series.method.empty() ? "" : ", ") + found->method;
      series.y[at] = found->median();
      if (const auto interval = median_interval(found->values))
        series.interval[at] = {interval->low, interval->high};
    }
    if (std::none_of(series.interval.begin(), series.interval.end(),
                     [](const auto& i) { return i.has_value(); }))
      series.interval.clear();
    figure.series.push_back(std::move(series));
  }
  const std::vector<std::string> how = methods(figure);
  if (how.empty()) throw Error(fmt::format("no trial of {} has a {}", results.name, metric));
  figure.y.label = fmt::format("{}{} ({})", metric, unit.empty() ? "" : ", " + unit, fmt::join(how, ", "));
  if (figure.categories.size() * figure.series.size() > 2 * kColumnCategories)
    figure.width = FigureWidth::kPage;
  figure.provenance = {{"experiment", results.name},
                       {"devices", fmt::format("{}", fmt::join(devices, ", "))},
                       {"methods", fmt::format("{}", fmt::join(how, ", "))},
                       {"stitchwork", version().version}};
  return figure;
}

}  // namespace stitchwork
