// The fusion plan: patterns that are disjoint, make no cycle, and have the largest sum of scores
// (F19 section 4.1).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/planners/fusionstitching/ilp/cycles.h"
#include "analysis/planners/fusionstitching/ilp/pattern.h"

namespace stitchwork::fusionstitching {

/// Scores of patterns in microseconds: first an upper bound of each, the exact score of those that a solution
/// takes. Each solution under bounds is one of a relaxation, so a solution of exact scores is an optimum.
struct Scores {
  std::vector<double> us;
  std::vector<bool> exact;
  /// Exact scores of some patterns, in their order; a negative one takes the pattern out.
  std::function<std::vector<double>(const std::vector<int>& patterns)> evaluate;
};

/// Sets of ops of which each must be in one pattern that is taken; every pattern has all or none of a set.
using Required = std::vector<std::vector<NodeId>>;

struct Choice {
  std::vector<int> patterns;  ///< ascending
  double us = 0;              ///< sum of their scores
  std::vector<Cycle> cycles;  ///< that were cut, in that order
  int rounds = 0;             ///< programs solved
  int rows = 0;               ///< of the first program, ops that several patterns hold alike counted once
  int nodes = 0;              ///< of branch and bound
  std::string limit;          ///< why a limit of the solver ended the search; empty if none did
};

/// Programs are solved again with their cycles cut at most so often; then the patterns of least score leave
/// the cycles that are left. As measured: transformer_train's choice is still cyclic behind 89 programs of a
/// second.
constexpr int kMostCycleRounds = 16;

/// The optimum; behind a limit of the solver the better of what it found, if that is acyclic, and
/// choose_greedily. Fills in exact scores of `scores`. Throws Error where no pattern that holds a required
/// set has a score.
Choice choose_optimal(const Ops& ops, const std::vector<Pattern>& patterns, const Required& required,
                      Scores& scores);

/// By score an op, descending, skipping what would meet what is taken or make a cycle.
Choice choose_greedily(const Ops& ops, const std::vector<Pattern>& patterns, const Required& required,
                       Scores& scores);

}  // namespace stitchwork::fusionstitching
