#include "gui/view/memory_figure.h"

#include <utility>

#include "core/base/version.h"

namespace stitchwork::gui {

std::optional<Figure> memory_figure(const std::vector<MemorySeries>& plans) {
  constexpr double kMiB = 1 << 20;
  Figure figure;
  figure.id = "memory";
  figure.title = "Device memory over the steps of a plan";
  figure.kind = FigureKind::kPoints;
  figure.width = FigureWidth::kPage;
  figure.x.label = "step";
  figure.y = {.label = "MiB (modelled)", .logarithmic = false, .low = 0, .high = {}};
  for (const MemorySeries& plan : plans) {
    if (plan.memory.steps.empty()) continue;
    FigureSeries series;
    series.name = plan.name;
    series.style = plan.style;
    series.method = "modelled";
    for (std::size_t s = 0; s < plan.memory.steps.size(); ++s) {
      const PlanMemory::Step& step = plan.memory.steps[s];
      const double mib = static_cast<double>(step.buffers + step.beside) / kMiB;
      for (const std::size_t x : {s, s + 1}) {
        series.x.push_back(static_cast<double>(x));
        series.y.emplace_back(mib);
      }
    }
    figure.series.push_back(std::move(series));
  }
  if (figure.series.empty()) return std::nullopt;
  figure.provenance = {{"methods", "modelled"}, {"stitchwork", version().version}};
  return figure;
}

}  // namespace stitchwork::gui
