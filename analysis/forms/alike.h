// Parts of a graph that are alike have kernels that are alike: they are planned once.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/plan/constraints.h"
#include "analysis/stitching/scope.h"

namespace stitchwork {

/// `kernel` with the ops `to` in place of the ops `from`, pair by pair; others stay.
KernelPlan renamed(const KernelPlan& kernel, std::span<const NodeId> from, std::span<const NodeId> to);

namespace astitch {

/// What a search for kernels asks of a stitch op and of what lies around it, names left out.
struct Likeness {
  std::string key;          ///< equal for stitch ops that have equal kernels but for the ops' names
  std::vector<NodeId> ops;  ///< its members, index maps around them, and what these read, ascending
};
/// nullopt: overrides are about some of these ops, or too many index maps lie around the stitch op.
std::optional<Likeness> likeness(const Nodes& nodes, const StitchOp& op, const Constraints& constraints);

/// Kernels of stitch ops by what these are like. Those of one device and of equal options.
class KnownKernels {
 public:
  /// Those of the one that it is like; nullopt: none is known.
  std::optional<std::vector<KernelPlan>> find(const Likeness& like) const;
  void add(Likeness like, std::vector<KernelPlan> kernels);

 private:
  struct Known {
    std::vector<NodeId> ops;
    std::vector<KernelPlan> kernels;
  };
  std::unordered_map<std::string, Known> known_;
};

}  // namespace astitch
}  // namespace stitchwork
