// What would it take to keep more values out of device memory? The costliest edges between the kernels of a
// plan, the rule that blocks each, and the override that admits it, tried.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/planners/planner.h"

namespace stitchwork {

/// One value that a kernel writes and another reads.
struct Advice {
  std::string producer, consumer;      ///< the value, and the first op of the other kernel that reads it
  std::string from_kernel, to_kernel;  ///< "k0 divide_1", by the plan advised on
  std::int64_t bytes = 0;  ///< of DRAM traffic that would go: the read, and the write if it is the only one
  double gain_us = 0;      ///< modelled, of those bytes and the launch
  std::string rule, why;   ///< the decision that keeps the kernels apart
  Edit edit;               ///< what to override
  double before_us = 0;    ///< predicted of the plan as it is
  std::optional<double> after_us;  ///< predicted with the override; empty if it is refused
  std::string refusal;             ///< why it is

  bool gains() const { return after_us && *after_us < before_us; }
};

/// The edges that cost most, at most `count`, costliest first. `options.edits` stay in place.
std::vector<Advice> advise(const Graph& graph, const Device& device, std::string_view planner,
                           const PlanOptions& options, std::size_t count = 10);

}  // namespace stitchwork
