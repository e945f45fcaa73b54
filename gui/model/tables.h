// What the tables of the window show, each a RecordModel.
#pragma once

#include "analysis/explain/advise.h"
#include "core/substitute/rewritten_graph.h"
#include "gui/model/record_model.h"
#include "gui/model/session.h"

namespace stitchwork::gui {

/// The landing view: a row a step of the plan, with its share of the time. `run`, if any, replaces estimates
/// by what was executed. Keys are steps.
void fill_kernels(RecordModel& model, const PlannedModel& planned, const TrialResult* run);
/// Index of the column that the list is sorted by at first, and of the one with bars.
inline constexpr int kTimeColumn = 2;
inline constexpr int kShareColumn = 3;

/// A row a decision of the planner, in the order they were taken. Keys are decisions.
void fill_decisions(RecordModel& model, const PlannedModel& planned);

/// A row a kernel that ran, a column a counter. Keys are kernels of the executable's plan.
void fill_counters(RecordModel& model, const TrialResult& run);

/// A row a launch of an iteration of another tool's profile: its imported time beside the modelled one of its
/// step, and what it stands for. Keys are steps, -1 where it is not of one step alone.
void fill_launches(RecordModel& model, const PlannedModel& planned, const ProfileComparison& profiled);

/// What each resource of an SM alone would admit. Keys are rows.
void fill_occupancy(RecordModel& model, const Device& device, int threads, int registers,
                    std::int64_t shared_bytes);

/// Costliest values between kernels, and what merging their kernels would give. Keys are rows.
void fill_advice(RecordModel& model, const std::vector<Advice>& advice);

/// The overrides in force. Keys are edits.
void fill_edits(RecordModel& model, const std::vector<Edit>& edits);

/// A step of the plan's rewriting at one place.
struct Rewriting {
  std::string rule;
  rewriting::Place at;   ///< the ops it stood on
  NodeId now = kNoNode;  ///< the op of the planned entry that gives the first one's value, or stands for it
  std::string why;       ///< what the planner says it gains, else what the rule does
};
/// In the order of the derivation, without tidy ones, which have no places.
std::vector<Rewriting> rewritings(const PlannedModel& planned);
void fill_rewritings(RecordModel& model, const std::vector<Rewriting>& steps);

/// What went wrong, the latest last. Keys are rows.
void fill_problems(RecordModel& model, const std::vector<Problem>& problems);

/// "1 op", "14 ops", "2 grid barriers".
QString counted(long long count, const QString& what);
QString us(double microseconds);   ///< "12.3 µs"
QString grouped(long long value);  ///< "1,234"
QString bytes_text(double bytes);  ///< "1.5 KiB"

}  // namespace stitchwork::gui
