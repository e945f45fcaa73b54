// Plans of one model as an application in one HTML file that needs nothing else: no network, no Qt. What it
// shows is a document of JSON (page_data.h); what draws it is in assets/, with d3 (core/base/data.h: "page").
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/plan/plan.h"
#include "experiments/model.h"

namespace stitchwork::gui {

/// A counter or time of a run, by which steps are coloured.
struct PageMetric {
  std::string title;        ///< "time", "dram_read_bytes"
  std::string method;       ///< "simulated", "measured", "imported", ...
  std::string least, most;  ///< for the legend
  /// By step, as first_step (gui/layout/fold_tree.h) numbers them: a value within [0, 1] and its text.
  std::vector<std::optional<std::pair<double, std::string>>> values;
};

struct PagePlan {
  const FusionPlan* plan = nullptr;  ///< with its decisions, or the page asks for them again
  std::vector<PageMetric> metrics;
  std::optional<std::vector<int>> expanded;  ///< nodes of the fold tree; empty: as plans are opened
  std::string name;                          ///< what the page calls it, no two alike; "": its planner
};

/// Gives the plan that it ran the times and counters of a document of `stitchwork run --json`. Throws Error
/// naming `file` and what is wrong where it is no such document, of another model, or of none of the plans.
void add_run(const Model& model, std::vector<PagePlan>& plans, const std::string& text,
             const std::string& file);

/// A run's value as metrics have it: "12.3 µs", "1,234".
std::string metric_text(double value, bool microseconds);

/// The page. Throws Error where d3 or a file of the page's own is not there.
std::string plans_page(const Model& model, const std::vector<PagePlan>& plans);

}  // namespace stitchwork::gui
