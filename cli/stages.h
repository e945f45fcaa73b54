// Every stage of the road in one folder: `compile MODEL --all-stages -o DIR`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/cli.h"

namespace stitchwork {

/// Throws Error where `folder` is something else than a folder, or has files and `force` is not set.
void require_empty_folder(const std::string& folder, bool force);

/// Writes what there is of each stage into `folder` when all of it is made, with index.json (schema
/// "stitchwork.stages/1") and index.md; files of other names stay. `executable` is null without a PTX
/// compiler. Returns the index.
nlohmann::ordered_json write_stages(const Planned& planned, const Graph& as_read,
                                    const Executable* executable, const std::string& folder);

}  // namespace stitchwork
