// The primitives that kernels are chosen for, in parts small enough for a bit a primitive. Venkatram and
// Oliaro, "ML computation graph operator fission and fusion", section 2.1; the execution states of its
// successor Korch (framework/calc.py) are sets of them.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/stitching/nodes.h"

namespace stitchwork::fission {

/// A set of primitives of a window, a bit each.
using Mask = std::uint64_t;

/// So many bits has a mask, so that a set is one number of the machine.
inline constexpr int kMostPrimitives = 64;

inline bool has(Mask set, int i) { return ((set >> i) & 1) != 0; }
inline Mask only(int i) { return Mask{1} << i; }

/// Primitives whose kernels are chosen together: those that reach each other without passing a library call.
/// Index maps and immediates are none: every kernel that reads them repeats them.
struct Window {
  std::vector<NodeId> ops;      ///< topological order
  std::vector<Mask> producers;  ///< by primitive: those of the window that it reads
  std::vector<Mask> ancestors;  ///< by primitive: those of the window that it descends from, and itself
  /// By primitive: those of the window that what it reads from outside descends from.
  std::vector<Mask> outside;
  Mask required = 0;  ///< read by calls, results or other windows
  int component = 0;  ///< windows of one component of the graph have the same

  int size() const { return static_cast<int>(ops.size()); }
};

/// Of the entry computation, by their first primitive. Components of more than kMostPrimitives are cut where
/// fewest bytes cross, half a window at least before each cut.
std::vector<Window> windows(const astitch::Nodes& nodes);

}  // namespace stitchwork::fission
