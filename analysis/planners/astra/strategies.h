// Allocation strategies: which fusion groups have their arrays beside each other at once, and where the
// arrays then lie (Astra, sections 3.2 and 4.5.2).
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/facts/gemm.h"
#include "analysis/planners/astra/group_classes.h"

namespace stitchwork::astra {

/// A row-major matrix of device memory in which arrays are blocks.
struct Region {
  std::int64_t rows = 0, cols = 0;  ///< elements; rows are `cols` apart
  DType dtype = DType::kF32;
  std::vector<int> views;  ///< places in Strategy::views, by row and column
  bool source = false;     ///< only parameters and constants: filled once, before the first step
};

/// Where an array lies in a region. Equal immediates share a view, one immediate may have several.
struct View {
  NodeId op = kNoNode;
  int region = 0;
  std::int64_t row = 0, col = 0;    ///< of its first element, in elements of the region
  std::int64_t rows = 0, cols = 0;  ///< its own
};

/// A group as a strategy has it: without the members it gave up.
struct StrategyGroup {
  FusionGroup group;
  int number = 0;                             ///< place in the space's list of groups
  std::vector<std::vector<int>> left, right;  ///< [i][q], [j][q]: views, or -1: an array by itself
  std::vector<int> result;                    ///< [i * N + j]: likewise
};

struct Strategy {
  std::vector<StrategyGroup> groups;  ///< by number
  std::vector<int> unfused;           ///< numbers of groups whose arrays lie otherwise
  std::vector<Region> regions;
  std::vector<View> views;
  int saved_calls = 0;
};

struct Strategies {
  std::vector<Strategy> list;      ///< most saved calls first; one at least
  int left_out = 0;                ///< maximal sets beyond those in the list
  int classes = 0, conflicts = 0;  ///< of groups; pairs of them that exclude each other
};

/// At most so many strategies. A choice, not measured: each multiplies what has to be tried, and the paper's
/// models have up to four (section 6.5, Table 7: 5.5 times the configurations).
inline constexpr std::size_t kMostStrategies = 8;

/// Members that one array keeps from fitting are given up (astra.offending-tensor); classes that still
/// exclude each other fork: the strategies are the maximal sets of classes of which no two do.
Strategies strategies(const Computation& computation, const Products& products,
                      const std::vector<Ladder>& ladders, const std::vector<FusionGroup>& groups,
                      Recorder& recorder);

/// All maximal independent sets of a graph (Bron and Kerbosch, with pivots), each ascending, in ascending
/// order; `most` at most. `adjacent[v]`: ascending.
std::vector<std::vector<int>> maximal_independent_sets(const std::vector<std::vector<int>>& adjacent,
                                                       std::size_t most);

/// A matrix of a fused call: in a region, or (`region` -1) the array of `op`.
struct CallMatrix {
  int region = -1;
  NodeId op = kNoNode;
  std::int64_t offset = 0;  ///< elements
};

/// One call of a group: result = left right, added to what is there if `accumulate`.
struct FusedCall {
  Gemm gemm;
  CallMatrix left, right, result;
  bool accumulate = false;
  std::vector<NodeId> dots;
};

/// The calls that make a group in these chunks, rungs innermost. `space_groups` has the group before it gave
/// up members, whose products follow, one call each. (1, 1, 1) needs no group that is fused.
std::vector<FusedCall> fused_calls(const Products& products, const std::vector<Ladder>& ladders,
                                   const FusionGroup& whole, const Strategy& strategy,
                                   const StrategyGroup& group, const Chunk& chunk);

}  // namespace stitchwork::astra
