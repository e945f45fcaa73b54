// The fields in which saved plans hold a mapping and its deal ("mapping" of docs/schema/plan.schema.json).
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/json/json_cursor.h"
#include "analysis/plan/mapping.h"

namespace stitchwork {

nlohmann::ordered_json mapping_to_json(const Mapping& mapping, const Deal& deal);

/// The deal begins at block 0. Throws Error that names a field which is out of range, or which no mapping of
/// that kind has beside the others: a split of rows that threads have alone, blocks that are parts of
/// clusters.
Dealt mapping_from_json(const JsonCursor& json);

}  // namespace stitchwork
