// What the tables of the window show, each a RecordModel.
#pragma once

#include "analysis/explain/advise.h"
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

/// What each resource of an SM alone would admit. Keys are rows.
void fill_occupancy(RecordModel& model, const Device& device, int threads, int registers,
                    std::int64_t shared_bytes);

/// Costliest values between kernels, and what merging their kernels would give. Keys are rows.
void fill_advice(RecordModel& model, const std::vector<Advice>& advice);

/// The overrides in force. Keys are edits.
void fill_edits(RecordModel& model, const std::vector<Edit>& edits);

/// What went wrong, the latest last. Keys are rows.
void fill_problems(RecordModel& model, const std::vector<Problem>& problems);

/// "1 op", "14 ops", "2 grid barriers".
QString counted(long long count, const QString& what);
QString us(double microseconds);   ///< "12.3 µs"
QString grouped(long long value);  ///< "1,234"
QString bytes_text(double bytes);  ///< "1.5 KiB"

}  // namespace stitchwork::gui
