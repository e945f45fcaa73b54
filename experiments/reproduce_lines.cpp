// A reproduced table as lines of text.
#include <algorithm>
#include <cmath>

#include "core/base/format.h"
#include "experiments/reproduce.h"

namespace stitchwork {
namespace {

constexpr std::size_t kBestColumns = 3;

std::vector<std::string> distinct(const ReproducedTable& table, std::string ReproducedValue::*what) {
  std::vector<std::string> found;
  for (const ReproducedValue& v : table.values)
    if (std::ranges::find(found, v.*what) == found.end()) found.push_back(v.*what);
  return found;
}

std::vector<std::vector<std::string>> matrix_lines(const ReproducedTable& table) {
  const std::vector<std::string> columns = distinct(table, &ReproducedValue::column);
  std::map<std::pair<std::string, std::string>, const ReproducedValue*> cells;
  for (const ReproducedValue& v : table.values) cells.emplace(std::pair(v.row, v.column), &v);
  std::vector<std::vector<std::string>> result;
  for (const std::string& row : distinct(table, &ReproducedValue::row)) {
    std::vector<std::string>& line = result.emplace_back();
    line.push_back(row);
    for (const std::string& column : columns) {
      const auto cell = cells.find({row, column});
      line.push_back(cell == cells.end() ? "-" : number_text(cell->second->ours, cell->second->unit));
    }
    if (table.best.empty()) continue;
    const auto best = table.best.find(row);
    if (best == table.best.end()) {
      line.resize(line.size() + kBestColumns);
      continue;
    }
    const BestVariant& b = best->second;
    line.push_back(fmt::format("{}", fmt::join(b.variants, ", ")));
    line.push_back(b.over.empty() ? "-" : fmt::format("{:.2f}x over {}", b.factor, b.over));
    line.push_back(b.why);
  }
  return result;
}

}  // namespace

std::string number_text(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "-";
  if (unit == "%") return fmt::format("{:.1f} %", *value);
  if (unit == "x") return fmt::format("{:.2f}x", *value);
  if (*value == std::floor(*value) && std::abs(*value) < 1e15)
    return with_commas(static_cast<long long>(*value));
  return fmt::format("{:.{}f}", *value, std::abs(*value) < 0.1 ? 4 : 2);
}

std::vector<std::string> heads(const ReproducedTable& table) {
  if (!table.matrix) return {"row", "column", "paper", "ours", "ours / paper", "method of ours"};
  std::vector<std::string> result{"row"};
  for (std::string& column : distinct(table, &ReproducedValue::column)) result.push_back(std::move(column));
  if (!table.best.empty()) result.insert(result.end(), {"best", "by", "since"});
  return result;
}

std::vector<bool> number_columns(const ReproducedTable& table) {
  if (!table.matrix) return {false, false, true, true, true, false};
  std::vector<bool> result(heads(table).size(), true);
  result.front() = false;
  if (!table.best.empty()) std::fill(result.end() - kBestColumns, result.end(), false);
  return result;
}

std::vector<std::vector<std::string>> lines(const ReproducedTable& table) {
  if (table.matrix) return matrix_lines(table);
  std::vector<std::vector<std::string>> result;
  for (const ReproducedValue& v : table.values) {
    const auto ratio = v.ratio();
    result.push_back({v.row, v.column, number_text(v.paper, v.unit), number_text(v.ours, v.unit),
                      (ratio ? fmt::format("{:.2f}", *ratio) : std::string("-")) + (v.far() ? " *" : ""),
                      v.fitted ? v.method + ", fitted to the paper's" : v.method});
  }
  return result;
}

}  // namespace stitchwork
