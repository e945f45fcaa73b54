// What `reproduce` and `report --paper` share.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"
#include "experiments/reproduce.h"
#include "figures/data/renderer.h"

namespace stitchwork {

/// Writes pages of `stitchwork view` of what the tables are of (of `workloads` alone, if any) into `folder`,
/// and has the report, which will be `report`, lead there.
void lead_to_pages(const Cli& cli, Reproduction& reproduction, const std::string& db,
                   const std::vector<std::string>& workloads, const std::string& folder,
                   const std::string& report);

/// As .html, .pdf or .md. Throws Error for other extensions, and for .pdf without a renderer.
void write_reproduction(const Reproduction& reproduction, const std::string& file);

/// The formats that this build draws.
std::vector<FigureFormat> drawn_formats();

}  // namespace stitchwork
