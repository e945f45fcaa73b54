// Planners with knob settings, for tests that try them all: new rows of the tables join by themselves.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "analysis/planners/planner.h"
#include "tests/support/fuzz.h"

namespace stitchwork::testing {

/// With every other parameter of the graph a weight, from the first on, for settings that want some.
inline PlanOptions with_weights_of(const Graph& graph, PlanOptions options) {
  const Computation& entry = graph.entry_computation();
  for (std::size_t p = 0; p < entry.parameters.size(); p += 2)
    options.weights.push_back(entry.node(entry.parameters[p]).name);
  if (options.weights.empty()) options.knobs.erase("weights");
  return options;
}

struct PlannerSetting {
  std::string planner;
  PlanOptions options;

  std::string text() const {
    std::string result = planner;
    for (const auto& [name, value] : options.knobs) result += fmt::format(", {}={}", name, value);
    return result;
  }
};

/// Of rows that search rewritings for another planner, that planner's knobs are tried in its own row, and
/// those of Astra's columns in the row of all of them.
inline bool is_anothers_knob(const Planner& row, std::string_view knob) {
  if (row.name.starts_with("astra-") || row.name == "astra+astitch") return true;
  return row.name == "fission" &&
         std::ranges::find(planner("auto").knobs, knob) != planner("auto").knobs.end();
}

/// More of the same search as by default, for many times as long.
inline bool takes_long(std::string_view knob, std::string_view value) {
  return knob == "effort" && value == "full";
}

/// Every planner that takes any graph as it is, and with each value of each of its knobs that it has not by
/// itself.
inline std::vector<PlannerSetting> planner_settings() {
  std::vector<PlannerSetting> settings;
  for (const Planner& row : planners()) {
    if (row.takes != nullptr) continue;
    settings.push_back({std::string(row.name), {}});
    for (const auto& [name, own] : resolve_knobs(row, {}))
      for (const Knob& knob : is_anothers_knob(row, name) ? std::span<const Knob>() : knobs())
        for (std::string_view value : knob.values)
          if (knob.name == name && value != own && !takes_long(name, value))
            settings.push_back({std::string(row.name), {.knobs = {{name, std::string(value)}}}});
  }
  return settings;
}

/// A planner that has knobs with each of them at some value.
inline PlannerSetting mixed_setting(std::mt19937& random) {
  std::vector<const Planner*> rows;
  for (const Planner& row : planners())
    if (row.knobs.size() > 1) rows.push_back(&row);
  const Planner& row = *rows[random() % rows.size()];
  PlannerSetting setting{std::string(row.name), {}};
  for (std::string_view name : row.knobs)
    for (const Knob& knob : knobs())
      if (knob.name == name)
        if (const std::string_view value = knob.values[random() % knob.values.size()];
            !takes_long(name, value))
          setting.options.knobs[std::string(name)] = std::string(value);
  return setting;
}

/// What the graph of a seed is tried with: `count` settings in turn (STITCHWORK_FUZZ_SETTINGS: so many
/// instead), so that every setting meets graphs of every kind, and a mixed one. Each round of all settings
/// begins one further: kinds of graphs that come in turn, too, would else meet the same settings for ever.
inline std::vector<PlannerSetting> settings_of(std::uint32_t seed, std::size_t count) {
  static const std::vector<PlannerSetting> all = planner_settings();
  count = fuzz_setting("STITCHWORK_FUZZ_SETTINGS", static_cast<std::uint32_t>(count));
  std::vector<PlannerSetting> chosen;
  for (std::size_t k = 0; k < std::min(count, all.size()); ++k) {
    const std::size_t turn = seed * count + k;
    chosen.push_back(all[(turn + turn / all.size()) % all.size()]);
  }
  std::mt19937 random(seed);
  chosen.push_back(mixed_setting(random));
  return chosen;
}

}  // namespace stitchwork::testing
