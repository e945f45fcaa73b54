// What XLA's cost analysis of today counts in a kernel (GpuHloCostAnalysis): clocks, code, and how often each
// value of others is read. Of a producer in its consumer it follows from what was counted of both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork::xla {

/// A place at which a value is computed or read. Element-wise users pass on the places at which they are
/// computed themselves; every other user makes the value a place of its own.
struct Use {
  NodeId value = kNoNode, place = kNoNode;
  double uses = 0;     ///< of an element, at this place
  double emitted = 0;  ///< how often the place stands in the code
};

struct KernelWork {
  double clocks = 0;       ///< of all threads; a whole number, so that sums are the same in any order
  double clocks_once = 0;  ///< where a value is computed at most once (tiles)
  double emitted_ops = 0;  ///< ops in its code, each as often as its code stands there
  double splits = 0;       ///< those after which nothing computed before is used again
  std::int64_t tiled_reductions = 0;
  std::int64_t significant_reductions = 0;  ///< of rows that two reductions of a kernel may not have
  bool moves_minor = false;                 ///< a dimension that varies fastest comes from another one
  bool one_place = true;                    ///< all is computed at the place of the one root
  std::vector<Use> uses;                    ///< of values of others; by value, then by place
};

/// Counts kernels of one computation.
class WorkCounter {
 public:
  explicit WorkCounter(const Computation& computation);

  /// Of a kernel of these ops, ascending, whose roots are computed at these places.
  KernelWork count(const std::vector<NodeId>& ops, const std::vector<Use>& roots);

 private:
  struct Place {
    double uses = 0, emitted = 0;
  };
  struct Value {
    std::vector<NodeId> at;  ///< its places; ascending
    Place total;             ///< where it is a place itself
    bool inside = false, touched = false;
  };

  Value& value(NodeId id);
  Place total(NodeId id);
  void add(const Node& node, KernelWork& work);
  void pass_on(const Node& node, KernelWork& work);

  const Computation& computation_;
  std::vector<Value> values_;    ///< by node; as made but for those touched
  std::vector<NodeId> touched_;  ///< since the count began
};

/// Of a kernel whose one root is computed at these places in place of its own. Right where all of it has
/// one place, or the new ones are used once like the own one; else it is to be counted anew.
KernelWork placed(const KernelWork& work, NodeId root, std::span<const Use> at);

/// Of both in one kernel, `producer` as placed where the consumer uses its root. They have no ops in common,
/// and neither holds what the other reads but for the root.
KernelWork joined(const KernelWork& consumer, NodeId root, const KernelWork& producer);

/// Where the kernel uses a value of others.
std::span<const Use> uses_of(const KernelWork& work, NodeId value);

double elements(const Node& node);

}  // namespace stitchwork::xla
