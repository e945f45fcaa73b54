// A model and what rules made of it, evaluated side by side: what rounding makes of a rewriting.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "core/evaluate/judge.h"
#include "core/substitute/rewritten_graph.h"

namespace stitchwork {

/// An array that both graphs compute.
struct ArrayError {
  std::string op;  ///< the model's; empty: a result
  std::string shape;
  double max_abs = 0,
         max_rel = 0;  ///< of elements finite in both; relative to |r| + rms(r), as in CheckResult
};

struct GraphComparison {
  CheckResult judged;               ///< of the results
  std::vector<ArrayError> results;  ///< by number
  int ops = 0;                      ///< of the model's entry that have a value in both, where asked for
  std::vector<ArrayError> differ;   ///< those of them whose values differ, the largest relative error first
};

/// Of inputs drawn by the seed. `of_ops`: ops of the entry computation, too, which takes the memory of all
/// their values at once. Throws Error where that is not there, or the reference cannot compute an op.
GraphComparison compare_graphs(const Model& model, const rewriting::RewrittenGraph& rewritten,
                               std::uint64_t seed, bool of_ops);

nlohmann::ordered_json to_json(const GraphComparison& comparison, std::uint64_t seed);
std::string results_text(const GraphComparison& comparison);
/// The ops that differ most, at most `most`.
std::string ops_text(const GraphComparison& comparison, std::size_t most);

}  // namespace stitchwork
