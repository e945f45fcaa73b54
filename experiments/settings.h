// A trial's settings as text by name, and what two trials' settings have in common.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "experiments/trial.h"

namespace stitchwork {

/// "backend" is "sim", "options.mapping" is "paper"; lists are JSON.
using Settings = std::map<std::string, std::string>;

/// Of trial_params, as the store has them.
Settings settings_of(const nlohmann::ordered_json& params);
/// Of a trial whose model has not been read: without model_sha256.
Settings settings_of(const TrialSpec& spec);

/// Whether a trial with settings `found` is what `asked` asks for, whatever the content of its model and the
/// version of its results. Stores from before version 4 do not tell all settings: those are taken as asked.
bool is_asked_for(const Settings& asked, const Settings& found);

/// " on v100-sxm2", ", mapping=paper", ", results 0123456789ab"; "" where the setting says nothing.
std::string setting_text(const std::string& setting, const std::string& value);

}  // namespace stitchwork
