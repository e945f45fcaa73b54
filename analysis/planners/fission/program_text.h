// What `korch` chooses from, as text: primitives, candidates, the program for any solver.
#pragma once

#include <string>

#include "analysis/planners/fission/program.h"

namespace stitchwork::fission {

/// Execution states: sets of primitives that hold all that their members descend from. Nullopt: more than
/// `most`.
std::optional<std::int64_t> states(const Window& window, std::int64_t most);

/// The primitives of each window in order, what each reads, which are needed outside, how many states they
/// have.
std::string primitives_text(const Computation& computation, const std::vector<WindowProgram>& programs);

/// The candidates of each window with their prices (us, modelled); those that are chosen are marked.
std::string candidates_text(const Computation& computation, const std::vector<WindowProgram>& programs);

/// The program of each window in LP format (ilp::to_lp); in comments what the columns stand for.
std::string program_text(const Computation& computation, const std::vector<WindowProgram>& programs);

}  // namespace stitchwork::fission
