#include "analysis/planners/fusionstitching/ilp/set_packing.h"

#include <algorithm>

#include "analysis/ilp/binary_program.h"
#include "core/base/error.h"

namespace stitchwork::fusionstitching {
namespace {

bool holds(const SetPacking& program, const std::vector<int>& taken) {
  return std::all_of(program.rows.begin(), program.rows.end(), [&](const SetPacking::Row& row) {
    const auto count = std::count_if(row.columns.begin(), row.columns.end(), [&](int column) {
      return std::binary_search(taken.begin(), taken.end(), column);
    });
    return row.exactly ? count == row.most : count <= row.most;
  });
}

}  // namespace

SetPackingSolution solve(const SetPacking& program, std::int64_t most_column_nodes) {
  const auto columns = static_cast<int>(program.weights.size());
  ilp::BinaryProgram rows{true, program.weights, columns, {}};
  for (const SetPacking::Row& row : program.rows) {
    ilp::Row& added = rows.rows.emplace_back();
    for (const int column : row.columns) added.terms.push_back({column, 1});
    added.least = row.exactly ? row.most : 0;
    added.most = row.most;
  }
  const ilp::Solution found = ilp::solve(rows, most_column_nodes / std::max(1, columns));
  SetPackingSolution result{false, found.optimal, found.nodes, found.taken};
  result.feasible = found.feasible && holds(program, result.taken);
  SW_CHECK(result.feasible || !result.optimal, "CBC's optimum of {} columns breaks a row", columns);
  return result;
}

}  // namespace stitchwork::fusionstitching
