#include <cmath>

#include "core/base/error.h"
#include "figures/data/forms.h"

namespace stitchwork {
namespace {

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.9g}", value) : ""; }

}  // namespace

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string figure_csv(const Figure& figure) {
  check(figure);
  const bool points = figure.kind == FigureKind::kPoints, cdf = figure.kind == FigureKind::kCdf;
  const bool grouped = !figure.groups.empty();
  std::string text = fmt::format("series,{}{},value,low,high,method\n", grouped ? "group," : "",
                                 points ? csv_field(figure.x.label.empty() ? "x" : figure.x.label)
                                 : cdf  ? "n"
                                        : "category");
  for (const FigureSeries& series : figure.series) {
    std::size_t group = 0, left = grouped ? static_cast<std::size_t>(figure.groups[0].second) : 0;
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      while (grouped && left == 0) left = static_cast<std::size_t>(figure.groups[++group].second);
      if (grouped) --left;
      const auto* interval = !series.interval.empty() && series.interval[i] ? &*series.interval[i] : nullptr;
      text += fmt::format("{},{}{},{},{},{},{}\n", csv_field(series.name),
                          grouped ? csv_field(figure.groups[group].first) + "," : "",
                          points ? number(series.x[i])
                          : cdf  ? fmt::to_string(i + 1)
                                 : csv_field(figure.categories[i]),
                          series.y[i] ? number(*series.y[i]) : "", interval ? number(interval->first) : "",
                          interval ? number(interval->second) : "", csv_field(series.method));
    }
  }
  return text;
}

}  // namespace stitchwork
