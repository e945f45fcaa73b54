// Device memory over the steps of plans, as a figure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/plan/plan_memory.h"
#include "figures/data/figure.h"

namespace stitchwork::gui {

/// What a reader has to know of the figure.
inline constexpr std::string_view kMemoryCaption =
    "Device memory while each step runs: buffers from the first step that touches them to the last, scratch "
    "of "
    "kernels, and what loops and branches take at most.";

struct MemorySeries {
  std::string name;
  int style = -1;  ///< FigureSeries::style
  PlanMemory memory;
};

/// A line a plan, MiB over steps; empty where no plan has a step.
std::optional<Figure> memory_figure(const std::vector<MemorySeries>& plans);

}  // namespace stitchwork::gui
