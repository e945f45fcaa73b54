// Which ops of a module that a compiler optimised stand for which of the module it was given, where nobody
// recorded the steps between: by what is computed, and by the names that ops took along.
//
// 1. Ops of both that compute the same of the same parameters (equal ops, attributes and operands; layouts,
//    copies and ways of reshaping aside) give the same value.
// 2. An op with the op_name of ops of the model stands for that one among them which has its kind, type and
//    size and reads one of the values that it reads; where that leaves one it gives its value, and what is
//    computed of it is compared again by 1. Results stand for results.
// 3. An op of the model that is still without is looked for between the values it is computed from and those
//    computed from it: the compiler's own ops there stand for it, else the op that reads what it would give.
// What is then left has no counterpart, and that is said; nothing is guessed where several would do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/substitute/rewritten_graph.h"

namespace stitchwork {

struct GraphLinks {
  rewriting::Origins origins;  ///< of the optimised module's entry against the model's
  /// Ops of the model that none stands for, and why; without immediates, which every reader has.
  std::map<NodeId, std::string> gone;
  std::vector<NodeId> own;  ///< ops of the optimised module that stand for none, ascending
};

/// Both canonical (core/passes/passes.h), of one entry: parameters agree by number.
GraphLinks link_graphs(const Graph& model, const Graph& optimised);

/// By op of the entry of `a`: the first of that of `b` which computes the same of the same parameters;
/// kNoNode: none.
std::vector<NodeId> equal_values(const Graph& a, const Graph& b);

}  // namespace stitchwork
