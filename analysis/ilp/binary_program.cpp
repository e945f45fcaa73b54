#include "analysis/ilp/binary_program.h"

#include <coin/Cbc_C_Interface.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>

namespace stitchwork::ilp {
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

Matrix matrix_of(const BinaryProgram& program) {
  std::vector<std::vector<Term>> of_column(program.costs.size());  // the row in place of the column
  Matrix result;
  for (std::size_t r = 0; r < program.rows.size(); ++r) {
    const Row& row = program.rows[r];
    for (const Term& term : row.terms)
      of_column[static_cast<std::size_t>(term.column)].push_back({static_cast<int>(r), term.factor});
    result.least.push_back(row.least);
    result.most.push_back(row.most);
  }
  result.start.push_back(0);
  for (const std::vector<Term>& terms : of_column) {
    for (const Term& term : terms) {
      result.rows.push_back(term.column);
      result.values.push_back(term.factor);
    }
    result.start.push_back(static_cast<CoinBigIndex>(result.rows.size()));
  }
  return result;
}

}  // namespace

Solution solve(const BinaryProgram& program, std::int64_t most_nodes) {
  static std::mutex one_at_a_time;  // calls of the C interface are not for several threads
  const std::lock_guard lock(one_at_a_time);
  const auto columns = static_cast<int>(program.costs.size());
  const Matrix m = matrix_of(program);
  const std::vector<double> zeros(program.costs.size(), 0.0), ones(program.costs.size(), 1.0);
  const std::unique_ptr<Cbc_Model, DeleteModel> model(Cbc_newModel());
  Cbc_loadProblem(model.get(), columns, static_cast<int>(program.rows.size()), m.start.data(), m.rows.data(),
                  m.values.data(), zeros.data(), ones.data(), program.costs.data(), m.least.data(),
                  m.most.data());
  Cbc_setObjSense(model.get(), program.maximise ? -1 : 1);
  for (int column = 0; column < program.binary; ++column) Cbc_setInteger(model.get(), column);
  // Presolve prints unless both levels are 0.
  for (const char* level : {"log", "slog"}) Cbc_setParameter(model.get(), level, "0");
  // The relaxation is integral or nearly so: what makes hard programs tighter takes longer than to branch.
  for (const char* effort : {"cutsOnOff", "heuristicsOnOff"}) Cbc_setParameter(model.get(), effort, "off");
  for (const char* gap : {"ratioGap", "allowableGap"}) Cbc_setParameter(model.get(), gap, "0");
  Cbc_setParameter(model.get(), "maxNodes", std::to_string(std::max<std::int64_t>(1, most_nodes)).c_str());
  // Programs with many cuts have thousands of equal branches: looking at each before taking one took minutes
  // (FusionStitching's of transformer_train, 11,733 columns; without, about a second).
  Cbc_setParameter(model.get(), "strongBranching", "0");
  Cbc_solve(model.get());

  Solution result;
  result.nodes = Cbc_getNodeCount(model.get());
  if (Cbc_isProvenInfeasible(model.get()) != 0) return result;
  result.bound = Cbc_getBestPossibleObjValue(model.get());
  result.optimal = Cbc_isProvenOptimal(model.get()) != 0;
  const double* x = Cbc_getColSolution(model.get());
  result.feasible = x != nullptr;
  for (int column = 0; column < program.binary && x != nullptr; ++column)
    if (x[column] > 0.5) result.taken.push_back(column);
  return result;
}

std::string to_lp(const BinaryProgram& program, const std::vector<std::string>& names) {
  const auto sum = [&](const auto& terms, const auto& column_of, const auto& factor_of) {
    std::string text;
    std::size_t line = 0;
    for (const auto& term : terms) {
      const double factor = factor_of(term);
      if (factor == 0) continue;
      // Readers of the format take lines of some hundred characters.
      const std::string one = fmt::format(" {} {}{}", factor < 0 ? "-" : "+",
                                          std::abs(factor) == 1 ? "" : fmt::format("{} ", std::abs(factor)),
                                          names[static_cast<std::size_t>(column_of(term))]);
      line = text.empty() ? 0 : line + one.size();
      if (line > 80) {
        text += "\n  ";
        line = 0;
      }
      text += one;
    }
    return text.empty() ? " 0 " + names.front() : text;
  };
  const auto of_row = [&](const Row& row) {
    return sum(
        row.terms, [](const Term& t) { return t.column; }, [](const Term& t) { return t.factor; });
  };
  std::vector<int> columns(program.costs.size());
  std::iota(columns.begin(), columns.end(), 0);
  std::string text = program.maximise ? "Maximize\n" : "Minimize\n";
  text += " obj:" +
          sum(
              columns, [](int c) { return c; },
              [&](int c) { return program.costs[static_cast<std::size_t>(c)]; }) +
          "\nSubject To\n";
  for (std::size_t r = 0; r < program.rows.size(); ++r) {
    const Row& row = program.rows[r];
    if (std::isfinite(row.least)) text += fmt::format(" r{}:{} >= {}\n", r, of_row(row), row.least);
    if (std::isfinite(row.most))
      text += fmt::format(" r{}{}:{} <= {}\n", r, std::isfinite(row.least) ? "m" : "", of_row(row), row.most);
  }
  text += "Bounds\n";
  for (std::size_t c = static_cast<std::size_t>(program.binary); c < names.size(); ++c)
    text += fmt::format(" 0 <= {} <= 1\n", names[c]);
  text += "Binaries\n";
  for (std::size_t c = 0; c < static_cast<std::size_t>(program.binary); ++c) text += " " + names[c] + "\n";
  return text + "End\n";
}

}  // namespace stitchwork::ilp
