// Another tool's times and counters as metrics of a page, and its launches as a table of their own.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "experiments/profile/profile_text.h"
#include "gui/layout/fold_tree.h"
#include "gui/page/page.h"

namespace stitchwork::gui {
namespace {

/// The metric of these values by step.
PageMetric imported_metric(const std::string& title, bool microseconds,
                           const std::vector<std::optional<double>>& values) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const auto& value : values)
    if (value) least = std::min(least, *value), most = std::max(most, *value);
  PageMetric metric{title, "imported", metric_text(least, microseconds), metric_text(most, microseconds), {}};
  for (const auto& value : values) {
    if (!value) {
      metric.values.emplace_back();
      continue;
    }
    const double place = most > least ? (*value - least) / (most - least) : 0.5;
    metric.values.emplace_back(std::pair(place, metric_text(*value, microseconds)));
  }
  return metric;
}

std::vector<PageLaunch> page_launches(const ProfileComparison& c, const FusionPlan& plan) {
  std::vector<PageLaunch> rows;
  for (std::size_t i = 0; i < c.matches.size(); ++i) {
    const ProfileLaunch& l = c.iterations.launches[i];
    const ProfileMatch& m = c.matches[i];
    constexpr std::size_t kCell = 120;
    PageLaunch row{cut_to(l.kernel, kCell), {}, m.stands_for.name, std::string(name(m.rule)), m.why, {}};
    if (l.timed) row.us = l.mean_us;
    for (const int step : m.steps) row.steps.push_back(first_step(plan, m.stands_for.body) + step);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

void add_profile(const Model& model, const OpTrace& trace, std::vector<PagePlan>& plans,
                 const Profile& profile, std::optional<std::int64_t> iterations) {
  bool any = false;
  for (PagePlan& shown : plans) {
    const FusionPlan& plan = *shown.plan;
    const ProfileComparison c = compare_profile(profile, model, trace, plan, iterations);
    any = any || c.matched > 0;
    const auto steps = static_cast<std::size_t>(first_step(plan, static_cast<int>(plan.computations.size())));
    std::vector<std::optional<double>> times(steps);
    std::map<std::string, std::vector<std::optional<double>>> counters;
    for (const ProfiledStep& step : c.steps) {
      const auto at = static_cast<std::size_t>(first_step(plan, step.body) + step.step);
      times[at] = step.imported_us;
      for (const auto& [counter, value] : step.counters) {
        counters[counter].resize(steps);
        counters[counter][at] = value;
      }
    }
    if (std::ranges::any_of(times, [](const auto& t) { return t.has_value(); }))
      shown.metrics.push_back(imported_metric("profiled time", true, times));
    for (const auto& [counter, values] : counters)
      shown.metrics.push_back(imported_metric("profiled " + counter, false, values));
    shown.profile =
        PageProfile{profile_summary(profile, c), profile_findings(c, plan), page_launches(c, plan)};
  }
  if (!any)
    throw Error(profile.file, 0, 0,
                fmt::format("none of its launches stands for an op of {}", model.graph.source),
                "stitchwork profile MODEL PROFILE lists them; is it the model that was profiled?");
}

}  // namespace stitchwork::gui
