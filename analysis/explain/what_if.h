// Overrides that would change where an op is, tried out by planning again.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explain.h"

namespace stitchwork {

namespace fusionstitching {
struct PerformanceLibrary;
}

/// One override on top of those the plan was made with.
struct WhatIf {
  Edit edit;
  bool admitted = false;
  double predicted_us = 0;  ///< of the whole plan with it, modelled; 0 if it is refused
  std::string why;          ///< the planner's reason if it is refused
};

/// Overrides that are tried, at most.
/// A choice, not measured: each is a planning, and more lines are not read.
inline constexpr int kTriedOverrides = 6;

/// Merges with the neighbours of the explanation, and for a value that passes through global memory Regional;
/// at most `most` of them, and only those the plan's planner can honour at all. Nothing for a plan of an
/// unknown planner, and for one made with a performance library unless `library` is that one.
std::vector<WhatIf> try_overrides(const Graph& graph, const FusionPlan& plan, const Explanation& explanation,
                                  int most = kTriedOverrides,
                                  const fusionstitching::PerformanceLibrary* library = nullptr);

/// A line each, with the predicted time of `plan` to compare with.
std::string to_text(const FusionPlan& plan, const std::vector<WhatIf>& trials);

}  // namespace stitchwork
