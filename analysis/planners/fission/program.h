// Which kernels are launched: the binary program of Korch (framework/calc.py).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/ilp/binary_program.h"
#include "analysis/planners/fission/candidates.h"

namespace stitchwork::fission {

struct Selection {
  std::vector<int> chosen;  ///< candidates, ascending
  double us = 0;            ///< their prices, together
  bool optimal = false;     ///< false: the solver gave up; see `bound_us`
  double bound_us = 0;      ///< no choice of these candidates takes less
};

struct SolverLimits {
  /// Sets of values still needed behind one primitive; beyond, those that look cheapest are kept. A choice:
  /// 64 times as many take some 20 MB. 0: CBC alone.
  std::size_t states = 5'000;
  /// Of CBC's branch and bound, 1 to 5 ms each (measured, bert_base); 0: CBC is not asked.
  std::int64_t nodes = 20;
};

/// The cheapest candidates by which every required primitive is stored, and every value that one of them
/// reads is stored by another. No row says that a primitive is computed once. It needs no order: a kernel has
/// one output, and what it reads are strict ancestors of that. So the program is solved readers first: what
/// is needed once the kernels of all later primitives are chosen is all that the choice of the others depends
/// on. Where there are too many such sets CBC is asked, too, and says what no choice is below. Prices are
/// whole nanoseconds; of equal costs fewest kernels win, then what the numbers of the candidates decide, so
/// that the optimum is one whatever the solver.
Selection select(const Window& window, std::span<const Candidate> candidates,
                 const SolverLimits& limits = {});

/// Whether every required primitive and every value read is stored by a chosen candidate.
bool is_complete(const Window& window, std::span<const Candidate> candidates, const std::vector<int>& chosen);

/// A window with TVM's functions in it, its candidates, and what is chosen of them.
struct WindowProgram {
  Window window;
  std::vector<Cone> from_tvm;
  std::vector<Candidate> candidates;
  Selection selection;
};

/// The windows of the entry computation as `korch` solves them under these knobs, those of one component
/// behind each other.
std::vector<WindowProgram> programs(const Graph& graph, const Device& device,
                                    const std::map<std::string, std::string>& knobs = {});

/// As CBC gets it, in whole nanoseconds and parts that decide between equal ones: a column a candidate,
/// behind them one a value that is read.
ilp::BinaryProgram program(const Window& window, std::span<const Candidate> candidates);

}  // namespace stitchwork::fission
