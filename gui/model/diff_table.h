// What changed between two plans, as rows with the reason.
#pragma once

#include "analysis/explain/diff.h"
#include "gui/model/record_model.h"
#include "gui/model/session.h"

namespace stitchwork::gui {

/// Two plans of one model and what is different.
struct PlanComparison {
  PlannedPtr a, b;
  PlanDiff diff;
};

/// Keys are names of ops: where to look in both plans.
void fill_diff(RecordModel& model, const PlanComparison& comparison);
/// Kernels, calls, barriers, DRAM bytes, time: a row each, with the change from A to B in words, not only in
/// colour.
void fill_totals(RecordModel& model, const PlanComparison& comparison);

}  // namespace stitchwork::gui
