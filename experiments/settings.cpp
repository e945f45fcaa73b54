#include "experiments/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

/// Hexadecimal digits of a hash that are shown.
constexpr std::size_t kHashDigits = 8;

void flatten(const ordered_json& json, const std::string& prefix, Settings& into) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object())
      flatten(value, prefix + key + ".", into);
    else
      into[prefix + key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

/// What stores of version 3 and earlier kept in a trial's key alone.
bool was_not_recorded(const std::string& setting) {
  constexpr std::array<std::string_view, 7> kNames = {
      "compiler", "convolutions", "dependent_launch", "fast_math", "inputs_sha256", "repeats", "tf32"};
  return std::find(kNames.begin(), kNames.end(), setting) != kNames.end();
}

/// What comes with the program and the workload, and is not asked for.
bool is_version(const std::string& setting) {
  return setting == "results" || setting == "model_sha256" || setting == "distributions_sha256";
}

}  // namespace

Settings settings_of(const ordered_json& params) {
  Settings settings;
  flatten(params, "", settings);
  return settings;
}

Settings settings_of(const TrialSpec& spec) {
  Settings settings = settings_of(trial_params(Model(), spec));
  settings.erase("model_sha256");
  return settings;
}

bool is_asked_for(const Settings& asked, const Settings& found) {
  const bool complete = found.contains("results");  // recorded by version 4 of the store or later
  for (const auto& [name, value] : asked) {
    if (is_version(name)) continue;
    const auto same = found.find(name);
    if (same == found.end() ? complete || !was_not_recorded(name) : same->second != value) return false;
  }
  return std::all_of(found.begin(), found.end(),
                     [&](const auto& one) { return is_version(one.first) || asked.contains(one.first); });
}

std::string setting_text(const std::string& setting, const std::string& value) {
  if (value.empty() || value == "false") return "";
  if (value == "true") return ", " + setting;
  if (setting == "device") return " on " + value;
  if (setting == "seed") return " seed " + value;
  if (setting == "model_sha256") return ", model " + value.substr(0, kHashDigits);
  if (setting == "plan") return ", plan " + value.substr(0, kHashDigits);
  if (setting.starts_with("options.")) return fmt::format(", {}={}", setting.substr(8), value);
  if (setting.starts_with("limits.")) return fmt::format(", {} {}", setting.substr(7), value);
  return fmt::format(", {} {}", setting, value);
}

}  // namespace stitchwork
