// Plans of one model as an application in one HTML file that needs nothing else: no network, no Qt. What it
// shows is a document of JSON (page_data.h); what draws it is in assets/, with d3 (core/base/data.h: "page").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/plan/plan.h"
#include "experiments/model.h"

namespace stitchwork {
class OpTrace;
struct Profile;
}  // namespace stitchwork

namespace stitchwork::gui {

/// A counter or time of a run, by which steps are coloured.
struct PageMetric {
  std::string title;        ///< "time", "dram_read_bytes"
  std::string method;       ///< "simulated", "measured", "imported", ...
  std::string least, most;  ///< for the legend
  /// By step, as first_step (gui/layout/fold_tree.h) numbers them: a value within [0, 1] and its text.
  std::vector<std::optional<std::pair<double, std::string>>> values;
};

/// A launch of a profile's iteration.
struct PageLaunch {
  std::string kernel;
  std::optional<double> us;           ///< imported
  std::string stands_for, rule, why;  ///< as ProfileMatch (experiments/profile/match.h) has them
  std::vector<int> steps;             ///< as first_step numbers them
};

/// What another tool's profile says of a plan.
struct PageProfile {
  std::string summary, findings;  ///< lines
  std::vector<PageLaunch> launches;
};

struct PagePlan {
  const FusionPlan* plan = nullptr;  ///< with its decisions, or the page asks for them again
  std::vector<PageMetric> metrics;
  std::optional<std::vector<int>> expanded;  ///< nodes of the fold tree; empty: as plans are opened
  std::optional<PageProfile> profile;
  std::string name;  ///< what the page calls it, no two alike; "": its planner
};

/// A page has all of a model of so many ops; of larger ones an excerpt, so that its size is bounded.
/// Measured: pages of two plans of 10,000 ops are made in 1 to 12 s (15 s for slices) and have 0.7 to 3 MB.
inline constexpr std::size_t kMostOpsOfPage = 10'000;
/// A choice, not measured: with the kernels that reach beyond it, an excerpt is no more than such a page.
inline constexpr std::size_t kOpsOfExcerpt = 4'000;

/// Ops of the model's entry computation, by number.
struct OpRange {
  NodeId first = 0, last = 0;  ///< `last` is the first behind it
};

/// What pages show of the model; nullopt: all of it. `around`: the op in its middle, "": its beginning.
/// Throws Error where the entry has no such op.
std::optional<OpRange> excerpt_range(const Graph& model, const std::string& around = "");
std::vector<std::string> ops_in(const Graph& model, const OpRange& range);

/// Gives the plan that it ran the times and counters of a document of `stitchwork run --json`. Throws Error
/// naming `file` and what is wrong where it is no such document, of another model, or of none of the plans.
void add_run(const Model& model, std::vector<PagePlan>& plans, const std::string& text,
             const std::string& file);

/// Gives all plans the times and counters of what a profile's launches stand for, as imported metrics, and
/// its launches; `iterations`: so many it has. Throws Error naming its file where nothing in it stands for
/// an op of the model.
void add_profile(const Model& model, const OpTrace& trace, std::vector<PagePlan>& plans,
                 const Profile& profile, std::optional<std::int64_t> iterations = {});

/// A run's value as metrics have it: "12.3 µs", "1,234".
std::string metric_text(double value, bool microseconds);

/// The page, with what it shows of the plans where that is not all. Throws Error where d3 or a file of the
/// page's own is not there.
std::string plans_page(const Model& model, const std::vector<PagePlan>& plans,
                       const std::optional<OpRange>& range);
inline std::string plans_page(const Model& model, const std::vector<PagePlan>& plans) {
  return plans_page(model, plans, excerpt_range(model.graph));
}

}  // namespace stitchwork::gui
