// `report`: one self-contained HTML page (inline SVG and CSS, no network) of a store.
#pragma once

#include <optional>
#include <string>

#include "experiments/store.h"

namespace stitchwork {

struct ReportOptions {
  std::string experiment;  ///< name; "" = all
};

/// Title, provenance, one section a model and device: planners side by side (kernels, time, DRAM bytes,
/// barriers, check) as table and bars, then per kernel ops, schemes, launch, counters. Every number carries
/// how it was obtained.
std::string report_html(const Store& store, const ReportOptions& options = {});

}  // namespace stitchwork
