// Cycles that chosen patterns make of the graph (F19 section 4.1, Figure 3): each pattern is one step.
#pragma once

#include <string>
#include <vector>

#include "analysis/planners/fusionstitching/ilp/pattern.h"

namespace stitchwork::fusionstitching {

struct Cycle {
  std::vector<int> patterns;  ///< those on it, ascending: no plan can hold all of them
  std::vector<NodeId> path;   ///< an op of every step it goes through
};

/// One shortest cycle of each strongly connected part of the graph in which `chosen` patterns (disjoint,
/// indices into `patterns`) are contracted; none if it is acyclic.
std::vector<Cycle> find_cycles(const Ops& ops, const std::vector<Pattern>& patterns,
                               const std::vector<int>& chosen);

/// The graph in which patterns are contracted one after the other, none into a cycle.
class Contraction {
 public:
  explicit Contraction(const Ops& ops);
  /// Whether a path leads out of the pattern (ascending; of steps not contracted yet) and back into it.
  bool makes_cycle(const std::vector<NodeId>& pattern);
  void contract(const std::vector<NodeId>& pattern);

 private:
  const Ops& ops_;
  std::vector<int> unit_of_;                ///< by node; -1: a step of its own
  std::vector<std::vector<NodeId>> units_;  ///< ops of the contracted patterns
  std::vector<int> mark_;                   ///< by node
  int epoch_ = 0;
};

/// "a -> b -> a"
std::string to_text(const Ops& ops, const Cycle& cycle);

}  // namespace stitchwork::fusionstitching
