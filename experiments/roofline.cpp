#include "experiments/roofline.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/version.h"
#include "experiments/limits.h"
#include "experiments/trial_metrics.h"
#include "occupancy_model/hardware.h"

namespace stitchwork {
namespace {

/// Thousand million warp instructions, and sectors, a second.
struct Peaks {
  double instructions, sectors;
};

Peaks peaks_of(const Device& device) {
  return {device.sms * device.sm.schedulers * device.clock_ghz, device.dram_gb_s / kSectorBytes};
}

/// The least and most of the kernels' numbers and of the corner where both peaks meet.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  void add(double value) { low = std::min(low, value), high = std::max(high, value); }
};

FigureSeries points_of(const RooflineSeries& given, const Peaks& peaks, Range& x) {
  FigureSeries series;
  series.name = given.name;
  series.style = given.style;
  series.mark = FigureMark::kPoints;
  series.method = given.method;
  for (const RooflineKernel& kernel : given.kernels) {
    if (!(kernel.dram_us > 0 && kernel.issue_us > 0 && kernel.time_us > 0)) continue;
    const double instructions = kernel.issue_us * peaks.instructions;
    series.x.push_back(instructions / (kernel.dram_us * peaks.sectors));
    series.y.emplace_back(instructions / kernel.time_us);
    x.add(series.x.back());
  }
  return series;
}

}  // namespace

RooflineKernel roofline_kernel(const KernelTime& time) {
  return {time.busy_us[kIssueUnit], time.busy_us[kDramUnit], time.total_us};
}

std::optional<RooflineKernel> roofline_kernel(const KernelResult& kernel) {
  const auto issue = kernel.counters.find(busy_metric(kIssueUnit));
  const auto dram = kernel.counters.find(busy_metric(kDramUnit));
  if (issue == kernel.counters.end() || dram == kernel.counters.end()) return std::nullopt;
  return RooflineKernel{issue->second.value, dram->second.value, kernel.time_us.value};
}

std::optional<Figure> roofline_figure(const Device& device, const std::vector<RooflineSeries>& series) {
  const Peaks peaks = peaks_of(device);
  Figure figure;
  figure.id = "roofline";
  figure.title = fmt::format("Instruction roofline of {}", device.name);
  figure.kind = FigureKind::kPoints;
  figure.width = FigureWidth::kPage;
  constexpr double kHeight = 3;  // inches: a slope of one is seen as one
  figure.height_in = kHeight;
  figure.x = {
      .label = "warp instructions a 32-byte sector of DRAM", .logarithmic = true, .low = {}, .high = {}};
  Range x;
  std::vector<FigureSeries> kernels;
  for (const RooflineSeries& given : series)
    if (FigureSeries points = points_of(given, peaks, x); !points.x.empty())
      kernels.push_back(std::move(points));
  if (kernels.empty()) return std::nullopt;
  const double corner = peaks.instructions / peaks.sectors;
  x.add(corner);
  constexpr double kMargin = 2;  // of both peaks, a part is seen
  FigureSeries roof;
  roof.name =
      fmt::format("peaks: {:.0f} GB/s, {:.0f} G instructions/s", device.dram_gb_s, peaks.instructions);
  roof.style = 0;
  roof.x = {x.low / kMargin, corner, x.high * kMargin};
  roof.y = {roof.x[0] * peaks.sectors, peaks.instructions, peaks.instructions};
  figure.series.push_back(std::move(roof));
  for (FigureSeries& points : kernels) figure.series.push_back(std::move(points));
  const std::vector<std::string> how = methods(figure);
  figure.y = {.label = fmt::format("G warp instructions/s ({})", fmt::join(how, ", ")),
              .logarithmic = true,
              .low = {},
              .high = {}};
  figure.provenance = {{"device", device.id},
                       {"methods", fmt::format("{}", fmt::join(how, ", "))},
                       {"stitchwork", version().version}};
  return figure;
}

}  // namespace stitchwork
