// Binary programs, solved by CBC (COIN-OR branch and cut).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace stitchwork::ilp {

struct Term {
  int column = 0;
  double factor = 1;
};

/// least <= sum of the terms <= most.
struct Row {
  std::vector<Term> terms;
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

/// Each column is 0 or 1; those behind the first `binary` anything between.
struct BinaryProgram {
  bool maximise = false;
  std::vector<double> costs;  ///< by column
  int binary = 0;
  std::vector<Row> rows;
};

struct Solution {
  bool feasible = false;
  bool optimal = false;    ///< false: the limit of nodes ended the search
  int nodes = 0;           ///< of branch and bound
  double bound = 0;        ///< no solution costs less (or more, where the program maximises)
  std::vector<int> taken;  ///< binary columns, ascending
};

/// Branch and bound gives up behind `most_nodes` nodes; there is no limit of time, as a clock would make
/// plans differ. Deterministic; one solver works at a time, whatever the threads that ask. Whether what is
/// taken keeps to the rows is the caller's to check: CBC's columns are off by up to 1e-6.
Solution solve(const BinaryProgram& program, std::int64_t most_nodes);

/// In the LP format that CBC, CPLEX, Gurobi, HiGHS and SCIP read. `names`: of the columns, of letters, digits
/// and `_`, no two alike.
std::string to_lp(const BinaryProgram& program, const std::vector<std::string>& names);

}  // namespace stitchwork::ilp
