// `report`: a store as one self-contained HTML page (inline SVG and CSS, no network), or on paper.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "experiments/store.h"
#include "figures/data/document.h"

namespace stitchwork {

/// Where the plan of a trial can be looked at: a page of `stitchwork view`, relative to the report.
struct ReportPage {
  std::string address;
  std::map<std::string, std::string> kernels;  ///< addresses of its kernels, by name
};

struct ReportOptions {
  std::string experiment;                    ///< name; "" = all
  std::optional<std::size_t> kernels;        ///< listed of each trial (read_report)
  std::map<std::int64_t, ReportPage> pages;  ///< by trial; none: the report links to nothing
};

/// Title, provenance, one section a model and device: planners side by side (kernels, time, DRAM bytes,
/// barriers, check) as table and bars, then per kernel ops, schemes, launch, counters. Every number carries
/// how it was obtained.
std::string report_html(const Store& store, const ReportOptions& options = {});

/// The same numbers as a document, for paper: PDF and Markdown are made of it.
Document report_document(const Store& store, const ReportOptions& options = {});

/// The report in the form that the file's ending names: .html, .pdf, .md. Throws Error for others, and for
/// .pdf without a renderer.
std::string report_bytes(const Store& store, const ReportOptions& options, const std::string& file);

}  // namespace stitchwork
