// A figure of every kind, with what figures may have: holes, intervals, groups, references, long names.
#pragma once

#include <cmath>
#include <vector>

#include "figures/data/figure.h"

namespace stitchwork {

inline FigureSeries sample_series(std::string name, int style, std::vector<std::optional<double>> y,
                                  std::vector<double> x = {}) {
  FigureSeries series;
  series.name = std::move(name);
  series.style = style;
  series.x = std::move(x);
  series.y = std::move(y);
  series.method = "modelled";
  return series;
}

inline Figure sample_bars() {
  Figure figure;
  figure.id = "bars";
  figure.title = "Speed-up over unfused <made up> & more";
  figure.y.label = "speed-up (modelled)";
  figure.categories = {"CRNN", "ASR", "BERT", "Transformer", "DIEN"};
  figure.series = {sample_series("unfused", 0, {1, 1, 1, 1, 1}),
                   sample_series("XLA", 1, {1.4, 1.2, 1.62, 1.9, std::nullopt}),
                   sample_series("AStitch", 4, {2.31, 1.85, 1.9, 4.06, 2.5})};
  figure.series[2].interval = {{{2.2, 2.5}}, std::nullopt, {{1.8, 2.0}}, {{3.9, 4.2}}, {{2.4, 2.55}}};
  figure.references = {{2.37, "paper's average 2.37"}};
  figure.digits = 2;
  figure.provenance = {{"experiment", "sample"}, {"device", "v100-sxm2"}};
  return figure;
}

inline Figure sample_stacked_bars() {
  Figure figure;
  figure.id = "stacked_bars";
  figure.title = "Time, XLA = 1";
  figure.kind = FigureKind::kStackedBars;
  figure.y.label = "time, XLA = 1";
  for (const char* model : {"CRNN", "ASR", "BERT", "Transformer", "DIEN"}) {
    figure.categories.insert(figure.categories.end(), {"XLA", "AStitch"});
    figure.groups.emplace_back(model, 2);
  }
  figure.series = {sample_series("MEM", 2, {0.6, 0.4, 0.7, 0.55, 0.8, 0.6, 0.3, 0.22, 0.5, 0.3}),
                   sample_series("OVERHEAD", 3, {0.4, 0.2, 0.3, 0.2, 0.2, 0.1, 0.7, 0.25, 0.5, 0.02})};
  figure.digits = 2;
  return figure;
}

inline Figure sample_lines() {
  Figure figure;
  figure.id = "lines";
  figure.title = "Occupancy by kernel";
  figure.kind = FigureKind::kPoints;
  figure.x.label = "kernels, longest first";
  figure.y.label = "achieved occupancy";
  figure.y.low = 0;
  figure.y.high = 1;
  for (int s = 0; s < 2; ++s) {
    std::vector<double> x;
    std::vector<std::optional<double>> y;
    for (int i = 0; i < 60 - 25 * s; ++i) {
      x.push_back(i + 1);
      y.emplace_back(0.55 + 0.4 * s * std::exp(-i / 30.0) + 0.3 * std::sin(i / 4.0 + s) / (1 + s));
    }
    y[20] = std::nullopt;
    figure.series.push_back(sample_series(s == 0 ? "XLA" : "AStitch", s == 0 ? 1 : 4, y, x));
  }
  return figure;
}

inline Figure sample_roofline() {
  Figure figure;
  figure.id = "roofline";
  figure.title = "Roofline";
  figure.kind = FigureKind::kPoints;
  figure.width = FigureWidth::kPage;
  figure.height_in = 2.6;
  figure.x = {"operations a byte", true, std::nullopt, std::nullopt};
  figure.y = {"GFLOP/s", true, std::nullopt, std::nullopt};
  figure.series = {sample_series("V100: 900 GB/s, 15.7 TFLOP/s", 0, {9, 15700, 15700}, {0.01, 17.4, 1000}),
                   sample_series("kernels of XLA", 1, {50, 120, 300, 0, 2200}, {0.1, 0.3, 0.6, 1, 5}),
                   sample_series("kernels of AStitch", 4, {80, 210, 700, 5100}, {0.12, 0.4, 1.1, 9})};
  figure.series[1].mark = figure.series[2].mark = FigureMark::kPoints;
  return figure;
}

inline Figure sample_heatmap() {
  Figure figure;
  figure.id = "heatmap";
  figure.title = "Time by block size and split";
  figure.kind = FigureKind::kHeatmap;
  figure.x.label = "threads a block";
  figure.y.label = "split";
  figure.categories = {"128", "256", "512", "1024"};
  figure.series = {sample_series("1", -1, {12.5, 11.0, 10.2, 14.8}),
                   sample_series("2", -1, {11.1, 9.4, 9.0, 12.2}),
                   sample_series("4", -1, {11.9, 10.1, std::nullopt, 13.0})};
  figure.digits = 1;
  return figure;
}

inline Figure sample_cdf() {
  Figure figure;
  figure.id = "cdf";
  figure.title = "Times of kernels";
  figure.kind = FigureKind::kCdf;
  figure.x = {"time of a kernel, us", true, std::nullopt, std::nullopt};
  figure.y.label = "share of kernels";
  figure.series = {sample_series("XLA", 1, {3, 2.5, 8, 40, 90, 3.1, 2.9}),
                   sample_series("AStitch", 4, {5, 12, 70, 6.5})};
  return figure;
}

inline std::vector<Figure> sample_figures() {
  return {sample_bars(),     sample_stacked_bars(), sample_lines(),
          sample_roofline(), sample_heatmap(),      sample_cdf()};
}

}  // namespace stitchwork
