#include "analysis/planners/fusionstitching/ilp/set_packing.h"

#include <coin/Cbc_C_Interface.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "core/base/error.h"

namespace stitchwork::fusionstitching {
namespace {

struct DeleteModel {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

/// The program column by column, as CBC takes it.
struct Matrix {
  std::vector<CoinBigIndex> start;
  std::vector<int> rows;
  std::vector<double> values, least, most;
};

Matrix matrix(const SetPacking& program) {
  std::vector<std::vector<int>> rows_of(program.weights.size());
  Matrix result;
  for (std::size_t r = 0; r < program.rows.size(); ++r) {
    const SetPacking::Row& row = program.rows[r];
    for (const int column : row.columns)
      rows_of[static_cast<std::size_t>(column)].push_back(static_cast<int>(r));
    result.most.push_back(row.most);
    result.least.push_back(row.exactly ? row.most : 0);
  }
  result.start.push_back(0);
  for (const std::vector<int>& rows : rows_of) {
    result.rows.insert(result.rows.end(), rows.begin(), rows.end());
    result.start.push_back(static_cast<CoinBigIndex>(result.rows.size()));
  }
  result.values.assign(result.rows.size(), 1.0);
  return result;
}

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
  static std::mutex one_at_a_time;  // calls of the C interface are not for several threads
  const std::lock_guard lock(one_at_a_time);
  const auto columns = static_cast<int>(program.weights.size());
  const Matrix m = matrix(program);
  const std::vector<double> zeros(program.weights.size(), 0.0), ones(program.weights.size(), 1.0);
  const std::unique_ptr<Cbc_Model, DeleteModel> model(Cbc_newModel());
  Cbc_loadProblem(model.get(), columns, static_cast<int>(program.rows.size()), m.start.data(), m.rows.data(),
                  m.values.data(), zeros.data(), ones.data(), program.weights.data(), m.least.data(),
                  m.most.data());
  Cbc_setObjSense(model.get(), -1);
  for (int column = 0; column < columns; ++column) Cbc_setInteger(model.get(), column);
  // Presolve prints unless both levels are 0.
  for (const char* level : {"log", "slog"}) Cbc_setParameter(model.get(), level, "0");
  // The relaxation is integral or nearly so: what makes hard programs tighter takes longer than to branch.
  for (const char* effort : {"cutsOnOff", "heuristicsOnOff"}) Cbc_setParameter(model.get(), effort, "off");
  for (const char* gap : {"ratioGap", "allowableGap"}) Cbc_setParameter(model.get(), gap, "0");
  Cbc_setParameter(model.get(), "maxNodes",
                   std::to_string(std::max<std::int64_t>(1, most_column_nodes / columns)).c_str());
  // Programs with many cuts have thousands of equal branches: looking at each before taking one took minutes
  // (transformer_train, 11,733 columns; without, about a second).
  Cbc_setParameter(model.get(), "strongBranching", "0");
  Cbc_solve(model.get());

  SetPackingSolution result;
  result.nodes = Cbc_getNodeCount(model.get());
  if (Cbc_isProvenInfeasible(model.get()) != 0) return result;
  const double* x = Cbc_getColSolution(model.get());
  if (x == nullptr) return result;
  for (int column = 0; column < columns; ++column)
    if (x[column] > 0.5) result.taken.push_back(column);  // CBC's integers are off by up to 1e-6
  result.feasible = holds(program, result.taken);
  result.optimal = Cbc_isProvenOptimal(model.get()) != 0;
  SW_CHECK(result.feasible || !result.optimal, "CBC's optimum of {} columns breaks a row", columns);
  return result;
}

}  // namespace stitchwork::fusionstitching
