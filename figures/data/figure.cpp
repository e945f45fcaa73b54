#include "figures/data/figure.h"

#include <algorithm>

namespace stitchwork {

std::vector<std::string> methods(const Figure& figure) {
  std::vector<std::string> all;
  for (const FigureSeries& series : figure.series)
    if (!series.method.empty() && std::find(all.begin(), all.end(), series.method) == all.end())
      all.push_back(series.method);
  return all;
}

std::vector<std::pair<double, double>> cumulative(const FigureSeries& series) {
  std::vector<double> values;
  for (const auto& y : series.y)
    if (y) values.push_back(*y);
  std::sort(values.begin(), values.end());
  std::vector<std::pair<double, double>> steps;
  for (std::size_t i = 0; i < values.size(); ++i)
    steps.emplace_back(values[i], static_cast<double>(i + 1) / static_cast<double>(values.size()));
  return steps;
}

}  // namespace stitchwork
