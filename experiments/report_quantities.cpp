#include "experiments/report_quantities.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/format.h"
#include "experiments/experiment_figure.h"
#include "experiments/report_kernels.h"
#include "experiments/roofline.h"

namespace stitchwork {
namespace {

std::string utc(std::int64_t ns) {
  const auto seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

std::string whole(double value) { return with_commas(static_cast<long long>(value)); }
std::string sectors(double value) { return human_bytes(32 * value); }

}  // namespace

std::optional<ReportValue> Quantity::of(const ReportTrial& t) const {
  if (!counter.empty()) return t.total(counter);
  const ReportValue* sample = t.sample(metric);
  return sample == nullptr ? std::nullopt : std::optional(*sample);
}

const std::vector<Quantity>& quantities() {
  static const std::vector<Quantity> list = {
      {"memory kernels", "kernels of memory-intensive ops", "memory_kernels", "", whole},
      {"library calls", "matrix products and convolutions", "library_calls", "", whole, false},
      {"grid barriers", "in-kernel barriers over the whole grid, of the plan", "grid_barriers_planned", "",
       whole, false},
      {"kernel time (us)", "sum over the kernels of memory-intensive ops", "kernel_us", "", microseconds},
      {"total time (us)", "kernels, library calls, loops and branches, and what lies between them",
       "total_us", "", microseconds},
      {"library time (us)", "matrix products and convolutions", "library_us", "", microseconds, false},
      {"predicted time (us)", "total time predicted from the plan alone", "predicted_us", "", microseconds},
      {"DRAM read", "by the kernels", "", "dram_read_transactions", sectors},
      {"DRAM written", "by the kernels", "", "dram_write_transactions", sectors},
      {"inst_executed", "warp instructions", "", "inst_executed", whole},
      {"inst_fp_32", "fp32 instructions of all threads", "", "inst_fp_32", whole},
      {"peak memory", "device memory at the step that takes most", "peak_device_bytes", "", human_bytes},
  };
  return list;
}

const Quantity& quantity(const std::string& title) {
  const auto found = std::ranges::find(quantities(), title, &Quantity::title);
  SW_CHECK(found != quantities().end(), "{}", title);
  return *found;
}

const std::vector<ReportChart>& report_charts() {
  constexpr double kMiBPerSector = 32.0 / (1 << 20);
  static const std::vector<ReportChart> list = {
      {"kernels",
       "Kernels and library calls",
       {{"memory kernels", "memory kernels"}, {"library calls", "library calls"}},
       "number"},
      {"time", "Time", {{"kernel time (us)", "us in kernels"}, {"total time (us)", "us in all"}}, "us"},
      {"dram",
       "DRAM traffic of the kernels",
       {{"DRAM read", "read"}, {"DRAM written", "written"}},
       "MiB",
       kMiBPerSector},
      {"memory", "Device memory at its peak", {{"peak memory", "at the peak"}}, "MiB", 1.0 / (1 << 20)}};
  return list;
}

std::optional<Figure> chart_figure(const ReportSection& section, const ReportChart& chart) {
  Figure figure;
  figure.id = fmt::format("{}-{}-{}", section.workload, section.device, chart.id);
  figure.title = chart.title;
  figure.width = FigureWidth::kPage;
  figure.y.label = chart.axis;
  for (const ReportTrial& t : section.trials)
    figure.categories.push_back(t.ok ? t.label : t.label + " (failed)");
  // Long names stand slanted below the bars, in room of their own.
  constexpr double kUsual = 2, kPerLetter = 0.04;
  constexpr std::size_t kShort = 12;
  std::size_t longest = kShort;
  for (const std::string& name : figure.categories) longest = std::max(longest, name.size());
  figure.height_in = kUsual + kPerLetter * static_cast<double>(longest - kShort);
  for (const auto& [title, unit] : chart.quantities) {
    FigureSeries series;
    series.name = title;
    for (const ReportTrial& t : section.trials) {
      const auto value = quantity(title).of(t);
      series.y.push_back(value ? std::optional(chart.scale * value->value) : std::nullopt);
      if (value && series.method.find(value->method) == std::string::npos)
        series.method += (series.method.empty() ? "" : ", ") + value->method;
    }
    figure.series.push_back(std::move(series));
  }
  const bool any = std::ranges::any_of(figure.series, [](const FigureSeries& s) {
    return std::ranges::any_of(s.y, [](const auto& y) { return y.has_value(); });
  });
  return any ? std::optional(std::move(figure)) : std::nullopt;
}

std::optional<Figure> section_roofline(const ReportSection& section) {
  const auto known = std::ranges::find(devices(), section.device, &Device::id);
  if (known == std::ranges::end(devices())) return std::nullopt;
  std::vector<RooflineSeries> series;
  for (const ReportTrial& t : section.trials) {
    RooflineSeries& one = series.emplace_back(RooflineSeries{t.label, planner_style(t.planner), "", {}});
    for (const ReportKernel& kernel : t.kernels)
      if (const auto point = roofline_kernel(kernel)) {
        one.kernels.push_back(*point);
        one.method = kernel.time_us.method;
      }
  }
  std::optional<Figure> figure = roofline_figure(*known, series);
  if (figure) figure->id = fmt::format("{}-{}-roofline", section.workload, section.device);
  return figure;
}

const ReportTrial* base_trial(const ReportSection& section) {
  for (const ReportTrial& t : section.trials)
    if (t.ok) return &t;
  return nullptr;
}

std::string ratio_text(double ratio) {
  return ratio < 0.1 ? fmt::format("{:.3f}x", ratio) : fmt::format("{:.2f}x", ratio);
}

std::vector<std::pair<std::string, std::string>> provenance_lines(const Store& store,
                                                                  const ReportData& data) {
  std::size_t trials = 0, failed = 0;
  for (const ReportSection& s : data.sections)
    for (const ReportTrial& t : s.trials) {
      ++trials;
      failed += !t.ok;
    }
  std::vector<std::pair<std::string, std::string>> lines = {
      {"store", std::filesystem::path(store.path()).filename().string()},
      {"experiments", fmt::format("{}", fmt::join(data.experiments, ", "))},
      {"trials", fmt::format("{}, {} failed; medians of those that came out ok", trials, failed)},
      {"recorded", data.first_ns == 0 ? "-" : utc(data.first_ns) + " to " + utc(data.last_ns)}};
  for (const std::string& e : data.environments) lines.emplace_back("made with", e);
  return lines;
}

}  // namespace stitchwork
