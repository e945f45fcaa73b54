// Layered layout of a directed graph (Sugiyama): ranks, dummy nodes, median sweeps, coordinates. Knows
// nothing of plans or of Qt. Deterministic; ties break by node index, so indices should follow the order of
// execution.
//
// Split in two so that a view can be expanded without reordering what is around it: `layer` needs only the
// structure, `place` only the sizes.
#pragma once

#include <cstdint>
#include <vector>

namespace stitchwork::gui {

struct LayoutEdge {
  int from = 0, to = 0;
  bool operator==(const LayoutEdge&) const = default;
};

/// Rules by which edges are left out of the layout and drawn as numbered stubs. One input that every layer
/// reads takes Graphviz's dot from 1 s to 33 s on a graph of 111 nodes, and the picture says nothing.
inline constexpr int kStubFanOut = 16;  ///< edges of a node with more users than this
inline constexpr int kStubRanks = 60;   ///< edges that span more ranks than this

/// Ranks and the order within them.
struct Layering {
  /// A place in a rank: a node, or the bend of an edge that passes through (node == -1).
  struct Slot {
    int node = -1;
    int edge = -1;  ///< of a bend
  };
  int nodes = 0;
  std::vector<LayoutEdge> edges;         ///< as given
  std::vector<char> stub;                ///< by edge: left out of the layout
  std::vector<char> reversed;            ///< by edge: against the order, laid out the other way round
  std::vector<std::vector<Slot>> ranks;  ///< in order across
  std::vector<int> loose;                ///< nodes without any edge that is laid out, ascending
};

/// An edge from a later node to an earlier one is laid out reversed: quotients of folded graphs have cycles.
/// Self-loops and repeated edges are stubs.
Layering layer(int nodes, const std::vector<LayoutEdge>& edges);

struct LayoutSize {
  double across = 0, along = 0;
};
struct LayoutPoint {
  double across = 0, along = 0;
  bool operator==(const LayoutPoint&) const = default;
};

/// Positions, the smallest corner at (0, 0). `along` is the direction of the ranks.
struct Placement2D {
  std::vector<LayoutPoint> corner;              ///< by node: its smallest corner
  std::vector<std::vector<LayoutPoint>> bends;  ///< by edge, from its source to its target
  LayoutSize size;
};

struct LayoutGaps {
  double across = 24, along = 40;
};

/// `sizes` by node.
Placement2D place(const Layering& layering, const std::vector<LayoutSize>& sizes, const LayoutGaps& gaps);

}  // namespace stitchwork::gui
