// The numbers a report compares trials by, whatever it is written as.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/report_data.h"
#include "figures/data/figure.h"

namespace stitchwork {

/// A number two trials can be compared by: a metric of the attempt, or a counter summed over its kernels.
struct Quantity {
  std::string title, tip;
  std::string metric;   ///< "" if it is a counter
  std::string counter;  ///< "" if it is a metric
  std::string (*text)(double);
  bool relative = true;  ///< the ratio to the first planner is worth saying

  std::optional<ReportValue> of(const ReportTrial& trial) const;
};

const std::vector<Quantity>& quantities();
const Quantity& quantity(const std::string& title);

/// Bars of a section: of every trial these quantities (title, and what is written behind the number).
struct ReportChart {
  std::string id, title;
  std::vector<std::pair<std::string, std::string>> quantities;
  std::string axis;  ///< what an axis counts, of values times `scale`
  double scale = 1;
};
const std::vector<ReportChart>& report_charts();
/// The section's bars, a trial a category and a quantity a series; none where no trial has the numbers.
std::optional<Figure> chart_figure(const ReportSection& section, const ReportChart& chart);

/// The roofline of the section's kernels, a trial a series; none where the device is not one of ours, or no
/// kernel has what it shows.
std::optional<Figure> section_roofline(const ReportSection& section);

/// The trial ratios are taken to: the first that ran to the end.
const ReportTrial* base_trial(const ReportSection& section);
std::string ratio_text(double ratio);  ///< "0.50x"

/// Where the numbers come from: what, and plain text.
std::vector<std::pair<std::string, std::string>> provenance_lines(const Store& store, const ReportData& data);

}  // namespace stitchwork
