#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "figures/data/forms.h"
#include "figures/data/palette.h"

namespace stitchwork {
namespace {

using nlohmann::ordered_json;

/// Pixels at 96 to an inch, which Vega counts in.
constexpr int kColumnPixels = 320, kPagePixels = 672;

ordered_json rows(const Figure& figure) {
  ordered_json values = ordered_json::array();
  for (const FigureSeries& series : figure.series) {
    if (figure.kind == FigureKind::kCdf) {
      for (const auto& [x, share] : cumulative(series))
        values.push_back({{"series", series.name}, {"x", x}, {"y", share}, {"method", series.method}});
      continue;
    }
    std::size_t group = 0;
    int left = figure.groups.empty() ? 0 : figure.groups[0].second;
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      while (!figure.groups.empty() && left == 0) left = figure.groups[++group].second;
      --left;
      if (!series.y[i]) continue;
      ordered_json row{{"series", series.name}};
      if (figure.kind == FigureKind::kPoints)
        row["x"] = series.x[i];
      else
        row["category"] = figure.categories[i];
      if (!figure.groups.empty()) row["group"] = figure.groups[group].first;
      row["y"] = *series.y[i];
      if (!series.interval.empty() && series.interval[i]) {
        row["low"] = series.interval[i]->first;
        row["high"] = series.interval[i]->second;
      }
      row["method"] = series.method;
      values.push_back(std::move(row));
    }
  }
  return values;
}

ordered_json axis(const FigureAxis& a, const char* field, const char* type) {
  ordered_json encoding{{"field", field}, {"type", type}, {"title", a.label}};
  ordered_json scale = ordered_json::object();
  if (a.logarithmic) scale["type"] = "log";
  if (a.low && a.high) scale["domain"] = {*a.low, *a.high};
  if (!scale.empty()) encoding["scale"] = scale;
  return encoding;
}

ordered_json colours(const Figure& figure) {
  ordered_json domain = ordered_json::array(), range = ordered_json::array();
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    domain.push_back(figure.series[i].name);
    range.push_back(series_style(i, figure.series[i].style).colour);
  }
  return {{"field", "series"},
          {"type", "nominal"},
          {"title", nullptr},
          {"sort", nullptr},
          {"scale", {{"domain", domain}, {"range", range}}}};
}

ordered_json categorical(const char* field, const std::string& title) {
  return {{"field", field}, {"type", "nominal"}, {"title", title}, {"sort", nullptr}};
}

ordered_json bars(const Figure& figure) {
  const bool stacked = figure.kind == FigureKind::kStackedBars;
  ordered_json y = axis(figure.y, "y", "quantitative"), encoding;
  encoding["x"] = categorical("category", figure.x.label);
  y["stack"] = stacked ? ordered_json("zero") : ordered_json();
  encoding["y"] = y;
  encoding["color"] = colours(figure);
  if (!stacked) encoding["xOffset"] = {{"field", "series"}, {"sort", nullptr}};
  if (!figure.groups.empty()) encoding["column"] = categorical("group", "");
  return {{"mark", "bar"}, {"encoding", encoding}};
}

ordered_json error_bars(const Figure& figure) {
  ordered_json encoding = bars(figure)["encoding"];
  encoding.erase("color");
  encoding["y"] = {{"field", "low"}, {"type", "quantitative"}, {"title", figure.y.label}};
  encoding["y2"] = {{"field", "high"}};
  return {{"mark", "rule"}, {"encoding", encoding}};
}

bool has_intervals(const Figure& figure) {
  for (const FigureSeries& series : figure.series)
    if (!series.interval.empty()) return true;
  return false;
}

ordered_json points(const Figure& figure, FigureMark mark) {
  ordered_json names = ordered_json::array();
  for (const FigureSeries& series : figure.series)
    if (series.mark == mark) names.push_back(series.name);
  return {{"transform", {{{"filter", {{"field", "series"}, {"oneOf", names}}}}}},
          {"mark", mark == FigureMark::kLine ? ordered_json{{"type", "line"}}
                                             : ordered_json{{"type", "point"}, {"filled", true}}},
          {"encoding",
           {{"x", axis(figure.x, "x", "quantitative")},
            {"y", axis(figure.y, "y", "quantitative")},
            {"color", colours(figure)}}}};
}

}  // namespace

ordered_json vega_lite(const Figure& figure) {
  check(figure);
  ordered_json meta = ordered_json::object();
  for (const auto& [key, value] : figure.provenance) meta[key] = value;
  ordered_json spec{{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
                    {"title", figure.title},
                    {"usermeta", meta},
                    {"data", {{"values", rows(figure)}}}};
  ordered_json layers = ordered_json::array();
  switch (figure.kind) {
    case FigureKind::kBars:
    case FigureKind::kStackedBars:
      if (!figure.groups.empty()) {  // facets hold one layer
        spec.update(bars(figure));
        return spec;
      }
      layers.push_back(bars(figure));
      if (has_intervals(figure)) layers.push_back(error_bars(figure));
      break;
    case FigureKind::kPoints:
      for (const FigureMark mark : {FigureMark::kLine, FigureMark::kPoints}) {
        bool any = false;
        for (const FigureSeries& series : figure.series) any = any || series.mark == mark;
        if (any) layers.push_back(points(figure, mark));
      }
      break;
    case FigureKind::kHeatmap:
      layers.push_back({{"mark", "rect"},
                        {"encoding",
                         {{"x", categorical("category", figure.x.label)},
                          {"y", categorical("series", figure.y.label)},
                          {"color",
                           {{"field", "y"},
                            {"type", "quantitative"},
                            {"title", nullptr},
                            {"scale", {{"scheme", "viridis"}}}}}}}});
      break;
    case FigureKind::kCdf:
      layers.push_back({{"mark", {{"type", "line"}, {"interpolate", "step-after"}}},
                        {"encoding",
                         {{"x", axis(figure.x, "x", "quantitative")},
                          {"y", axis(figure.y, "y", "quantitative")},
                          {"color", colours(figure)}}}});
      break;
  }
  for (const FigureReference& reference : figure.references)
    layers.push_back(
        {{"data", {{"values", {{{"y", reference.y}, {"label", reference.label}}}}}},
         {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}}},
         {"encoding",
          {{"y", {{"field", "y"}, {"type", "quantitative"}}}, {"tooltip", {{"field", "label"}}}}}});
  spec["width"] = figure.width == FigureWidth::kColumn ? kColumnPixels : kPagePixels;
  spec["layer"] = layers;
  return spec;
}

}  // namespace stitchwork
