// What a caller asks of a planner.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

class PlanJudge;  // analysis/judge/judge.h
namespace fusionstitching {
struct PerformanceLibrary;
}

/// Knob values by name ("adaptive_mapping" -> "off", "mapping" -> "paper"); see docs/planners/knobs.md.
/// Unknown knobs or values throw Error naming the known ones.
struct PlanOptions {
  std::map<std::string, std::string> knobs;
  std::vector<Edit> edits;  ///< overrides; one that cannot be honoured is refused with an Error
  bool record_decisions = false;
  /// Parameters, by name or shell pattern, that every run is given the same values of, where a planner's knob
  /// weights is stable; none: those that the model declares (Graph::weights).
  std::vector<std::string> weights = {};
  bool tf32 = false;  ///< FusionPlan::tf32; make_plan throws Error where the device has no such units
  /// Which of several forms of a kernel is better; null: the estimate. Planners of other papers' rules do not
  /// ask. The times in a plan are estimates, whoever judged.
  const PlanJudge* judge = nullptr;
  /// Times of single ops, of the device, that planners choose by which take a library; nullptr: all are
  /// modelled. Outlives the planning. Others, and libraries of other devices, are refused with an Error.
  const fusionstitching::PerformanceLibrary* library = nullptr;
  /// Of planners that rewrite: these steps, and no others; nullopt: those the planner chooses.
  std::optional<std::vector<rewriting::Rewrite>> rewrites = std::nullopt;
  /// With record_decisions: ops of the planned graph, by name. Of parts of a graph that are alike, and so are
  /// planned once, decisions are recorded about those alone that hold one of these; nullopt: about every
  /// part, each then planned for itself.
  std::optional<std::vector<std::string>> decisions_about = std::nullopt;
};

}  // namespace stitchwork
