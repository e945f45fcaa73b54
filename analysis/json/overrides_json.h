// The JSON form of overrides, schema "stitchwork.override/1" (docs/schema/override.schema.json).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/plan/overrides.h"

namespace stitchwork {

class JsonCursor;

/// The list of edits, as plans record it.
nlohmann::ordered_json edits_to_json(const std::vector<Edit>& edits);
/// A document of its own, as `--override` reads it.
nlohmann::ordered_json overrides_to_json(const std::vector<Edit>& edits);

/// Throws Error with the file, the JSON path and what is expected. Whether the ops exist is the planner's
/// question.
std::vector<Edit> read_edits(const JsonCursor& list);
std::vector<Edit> overrides_from_json(const std::string& text, const std::string& file);

}  // namespace stitchwork
