#include "cli/table.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "figures/data/forms.h"

namespace stitchwork {

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    right_.push_back(!heading.empty() && heading[0] == '>');
    if (right_.back()) heading.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> row) {
  SW_CHECK(row.size() == headings_.size());
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<std::size_t> width(headings_.size());
  auto widen = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  };
  widen(headings_);
  for (const auto& row : rows_) widen(row);
  std::string out;
  auto print = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += right_[i] ? fmt::format("{:>{}}", row[i], width[i]) : fmt::format("{:<{}}", row[i], width[i]);
      if (i + 1 < row.size()) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  print(headings_);
  std::string rule;
  for (std::size_t i = 0; i < width.size(); ++i)
    rule += std::string(width[i], '-') + (i + 1 < width.size() ? "  " : "");
  out += rule + "\n";
  for (const auto& row : rows_) print(row);
  return out;
}

std::string Table::markdown() const {
  std::string out = fmt::format("| {} |\n|", fmt::join(headings_, " | "));
  for (const bool right : right_) out += right ? "---:|" : "---|";
  for (const auto& row : rows_) out += fmt::format("\n| {} |", fmt::join(row, " | "));
  return out + "\n";
}

std::string Table::csv() const {
  std::string out;
  const auto print = [&](const std::vector<std::string>& row) {
    std::vector<std::string> fields;
    for (const std::string& field : row) fields.push_back(csv_field(field));
    out += fmt::format("{}\n", fmt::join(fields, ","));
  };
  print(headings_);
  for (const auto& row : rows_) print(row);
  return out;
}

}  // namespace stitchwork
