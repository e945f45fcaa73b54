// Pages of `stitchwork view` beside a report, which leads to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "experiments/report.h"
#include "experiments/report_data.h"

namespace stitchwork {

struct WrittenPage {
  std::string workload, device;
  std::vector<std::string> plans;  ///< as the page calls them
  std::string address;             ///< relative to the report
};

struct ReportPages {
  std::map<std::int64_t, ReportPage> trials;  ///< by id
  std::vector<WrittenPage> pages;             ///< in the report's order
};

/// Plans the trials of each model and device again and writes them as pages into `folder`, which is made.
/// What cannot be planned again is said on stderr, with the reason, and has no page. `report` is the file
/// whose links lead there.
ReportPages write_pages(const Cli& cli, const ReportData& data, const std::string& folder,
                        const std::string& report);

/// Adds --pages.
void add_pages(CLI::App& command, std::string& folder);

}  // namespace stitchwork
