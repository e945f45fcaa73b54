// The times and counters of `stitchwork run --json` as metrics of a page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/json/json_cursor.h"
#include "gui/layout/fold_tree.h"
#include "gui/page/page.h"

namespace stitchwork::gui {
namespace {

/// Values by step, as they are collected.
struct Collected {
  std::vector<std::optional<double>> values;
  std::set<std::string> methods;
};

/// Steps of one computation of the run, from `first` on: times, and of kernels counters.
void collect(const JsonCursor& body, int first, std::map<std::string, Collected>& metrics, int steps) {
  const auto add = [&](const std::string& metric, int step, double value, const std::string& method) {
    Collected& all = metrics[metric];
    all.values.resize(static_cast<std::size_t>(steps));
    all.values[static_cast<std::size_t>(step)] = value;
    all.methods.insert(method);
  };
  std::map<std::string, int> step_of;
  int step = first;
  body.at("steps").each([&](const JsonCursor& at) {
    step_of[at.at("id").text()] = step;
    if (const auto time = at.find("time_us")) add("time", step, time->number(), at.at("method").text());
    ++step;
  });
  body.at("kernels").each([&](const JsonCursor& kernel) {
    const auto found = step_of.find(kernel.at("id").text());
    if (found == step_of.end()) kernel.fail("is no step's");
    const std::string method = kernel.at("method").text();
    if (const auto counters = kernel.find("counters"); counters && !counters->is_null())
      counters->each_member([&](const std::string& name, const JsonCursor& value) {
        add(name, found->second, value.number(), method);
      });
  });
}

PageMetric metric(const std::string& name, const Collected& all) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const auto& value : all.values)
    if (value) least = std::min(least, *value), most = std::max(most, *value);
  const bool time = name == "time";
  PageMetric result{name,
                    fmt::format("{}", fmt::join(all.methods, " and ")),
                    metric_text(least, time),
                    metric_text(most, time),
                    {}};
  for (const auto& value : all.values)
    if (value)
      result.values.emplace_back(
          std::pair(most > least ? (*value - least) / (most - least) : 0.5, metric_text(*value, time)));
    else
      result.values.emplace_back();
  return result;
}

bool same_steps(const FusionPlan& plan, const JsonCursor& run) {
  std::vector<std::string> ids;
  run.at("kernels").each(
      [&](const JsonCursor& k) { ids.push_back(k.at("id").text() + k.at("name").text()); });
  return std::ranges::equal(plan.kernels, ids, {}, [](const KernelPlan& k) { return k.id + k.name; });
}

}  // namespace

std::string metric_text(double value, bool microseconds) {
  if (microseconds) return fmt::format("{:.2f} µs", value);
  if (value != std::floor(value)) return fmt::format("{:.3f}", value);
  std::string text = fmt::format("{:.0f}", value);
  for (std::size_t at = text.size(); at > 3 + (value < 0 ? 1 : 0); text.insert(at, ",")) at -= 3;
  return text;
}

void add_run(const Model& model, std::vector<PagePlan>& plans, const std::string& text,
             const std::string& file) {
  const JsonDocument document(text, file, "stitchwork.run/1", "a run is written by stitchwork run --json",
                              "docs/schema/run.schema.json");
  const JsonCursor run = document.root();
  if (run.at("model").at("sha256").text() != model.graph.source_sha256)
    run.at("model").fail(fmt::format("another model or version than {}", model.graph.source),
                         "run the model that is viewed");
  const std::string planner = run.at("planner").text(), on = run.at("device").text();
  const auto plan = std::ranges::find_if(plans, [&](const PagePlan& p) {
    return p.plan->planner == planner && p.plan->device == on && same_steps(*p.plan, run);
  });
  if (plan == plans.end())
    run.at("planner").fail(
        fmt::format("none of the plans shown is this run's ({} on {}, {} kernels)", planner, on,
                    [&] {
                      int kernels = 0;
                      run.at("kernels").each([&](const JsonCursor&) { ++kernels; });
                      return kernels;
                    }()),
        "view it with the planner, device and knobs of the run");
  const int bodies = static_cast<int>(plan->plan->computations.size());
  const int steps = first_step(*plan->plan, bodies);
  std::map<std::string, Collected> metrics;
  collect(run, 0, metrics, steps);
  if (const auto computations = run.find("computations")) {
    int body = 0;
    computations->each([&](const JsonCursor& part) {
      if (body < bodies) collect(part, first_step(*plan->plan, body), metrics, steps);
      ++body;
    });
  }
  for (const auto& [name, all] : metrics) {
    PageMetric made = metric(name, all);
    // Time first: what is asked for most.
    plan->metrics.insert(name == "time" ? plan->metrics.begin() : plan->metrics.end(), std::move(made));
  }
}

}  // namespace stitchwork::gui
