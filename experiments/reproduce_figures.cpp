#include "experiments/reproduce_figures.h"

#include <algorithm>

#include "core/base/version.h"

namespace stitchwork {
namespace {

/// Categories that fit a column's width with bars that can be told apart.
constexpr std::size_t kWideCategories = 9;

const ReproducedValue* cell(const ReproducedTable& table, const std::string& row, const std::string& column) {
  for (const ReproducedValue& v : table.values)
    if (v.row == row && v.column == column) return &v;
  return nullptr;
}

/// The table's rows that have one of the columns, in order.
std::vector<std::string> rows_with(const ReproducedTable& table, const std::vector<std::string>& columns) {
  std::vector<std::string> rows;
  for (const ReproducedValue& v : table.values)
    if (std::find(columns.begin(), columns.end(), v.column) != columns.end() &&
        std::find(rows.begin(), rows.end(), v.row) == rows.end())
      rows.push_back(v.row);
  return rows;
}

/// Adds our number, or with `of` "paper" the paper's, of a row and column to a series.
void add_cell(FigureSeries& series, const ReproducedTable& table, const std::string& row,
              const std::string& column, bool paper) {
  const ReproducedValue* v = cell(table, row, column);
  series.y.push_back(v == nullptr ? std::nullopt : paper ? v->paper : v->ours);
  if (paper)
    series.method = "imported";
  else if (v != nullptr && series.method.empty())
    series.method = v->method;
}

FigureSeries begin_series(const JsonCursor& c) {
  c.only({"name", "column", "columns", "variant", "style", "of"});
  FigureSeries series;
  series.name = c.at("name").text();
  if (const auto style = c.find("style")) series.style = style->small();
  return series;
}

class FigureReader {
 public:
  FigureReader(const JsonCursor& c, const ReproducedTable& table, const ValueContext& context)
      : c_(c), table_(table), context_(context) {}

  Figure run() {
    c_.only({"id", "kind", "x", "y", "low", "high", "log", "digits", "series", "references", "workload",
             "counter", "x_column"});
    figure_.id = c_.at("id").text();
    figure_.title = fmt::format("{}: {}", table_.place, table_.title);
    if (const auto x = c_.find("x")) figure_.x.label = x->text();
    if (const auto low = c_.find("low")) figure_.y.low = low->number();
    if (const auto high = c_.find("high")) figure_.y.high = high->number();
    if (const auto log = c_.find("log")) figure_.y.logarithmic = log->boolean();
    if (const auto digits = c_.find("digits")) figure_.digits = digits->small();
    const std::string kind = c_.at("kind").text();
    if (kind == "bars")
      bars();
    else if (kind == "stacked")
      stacked();
    else if (kind == "trend")
      trend();
    else if (kind == "scatter")
      scatter();
    else
      c_.at("kind").fail(fmt::format("unknown kind '{}'", kind), "known: bars, stacked, trend, scatter");
    if (const auto references = c_.find("references"))
      references->each([&](const JsonCursor& r) {
        r.only({"y", "label"});
        if (!context_.quick) figure_.references.push_back({r.at("y").number(), r.at("label").text()});
      });
    figure_.y.label = fmt::format("{} ({})", c_.at("y").text(), fmt::join(methods(figure_), ", "));
    if (figure_.categories.size() >= kWideCategories) figure_.width = FigureWidth::kPage;
    provenance();
    return std::move(figure_);
  }

 private:
  void bars() {
    std::vector<std::string> columns;
    c_.at("series").each([&](const JsonCursor& s) { columns.push_back(s.at("column").text()); });
    figure_.categories = rows_with(table_, columns);
    c_.at("series").each([&](const JsonCursor& s) {
      FigureSeries series = begin_series(s);
      const bool paper = s.find("of") && s.at("of").text() == "paper";
      for (const std::string& row : figure_.categories)
        add_cell(series, table_, row, s.at("column").text(), paper);
      figure_.series.push_back(std::move(series));
    });
  }

  void stacked() {
    figure_.kind = FigureKind::kStackedBars;
    std::vector<std::string> columns, names;
    c_.at("series").each([&](const JsonCursor& s) {
      s.at("columns").each([&](const JsonCursor& bar) {
        bar.only({"bar", "column"});
        columns.push_back(bar.at("column").text());
        if (figure_.series.empty()) names.push_back(bar.at("bar").text());
      });
      figure_.series.push_back(begin_series(s));
    });
    const std::size_t bars_a_row = columns.size() / figure_.series.size();
    names.resize(bars_a_row);
    for (const std::string& row : rows_with(table_, columns)) {
      figure_.groups.emplace_back(row, static_cast<int>(bars_a_row));
      for (std::size_t b = 0; b < bars_a_row; ++b) {
        figure_.categories.push_back(names[b]);
        for (std::size_t s = 0; s < figure_.series.size(); ++s)
          add_cell(figure_.series[s], table_, row, columns[s * bars_a_row + b], false);
      }
    }
  }

  void trend() {
    figure_.kind = FigureKind::kPoints;
    figure_.y.low = 0;
    const std::string workload = workload_name(c_.at("workload").text(), context_.quick),
                      counter = c_.at("counter").text();
    c_.at("series").each([&](const JsonCursor& s) {
      FigureSeries series = begin_series(s);
      const auto& kernels =
          context_.experiment->kernels_of(*context_.store, workload, s.at("variant").text(), context_.device);
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        const auto found = kernels[i].counters.find(counter);
        series.x.push_back(static_cast<double>(i + 1));
        series.y.push_back(found == kernels[i].counters.end() ? std::nullopt
                                                              : std::optional(found->second.value));
        if (found != kernels[i].counters.end()) series.method = found->second.method;
      }
      figure_.series.push_back(std::move(series));
    });
  }

  void scatter() {
    figure_.kind = FigureKind::kPoints;
    figure_.x.logarithmic = figure_.y.logarithmic;
    const std::string x = c_.at("x_column").text();
    c_.at("series").each([&](const JsonCursor& s) {
      FigureSeries series = begin_series(s);
      series.mark = FigureMark::kPoints;
      for (const std::string& row : rows_with(table_, {x})) {
        const ReproducedValue* at = cell(table_, row, x);
        if (at == nullptr || !at->ours) continue;
        series.x.push_back(*at->ours);
        add_cell(series, table_, row, s.at("column").text(), false);
      }
      figure_.series.push_back(std::move(series));
    });
  }

  void provenance() {
    figure_.provenance = {{"paper", table_.place},
                          {"device", context_.device},
                          {"methods", fmt::format("{}", fmt::join(methods(figure_), ", "))}};
    if (context_.experiment != nullptr)
      figure_.provenance.emplace_back("experiment", context_.experiment->results.name);
    figure_.provenance.emplace_back("stitchwork", version().version);
  }

  const JsonCursor& c_;
  const ReproducedTable& table_;
  const ValueContext& context_;
  Figure figure_;
};

}  // namespace

Figure figure_of(const JsonCursor& description, const ReproducedTable& table, const ValueContext& context) {
  return FigureReader(description, table, context).run();
}

}  // namespace stitchwork
