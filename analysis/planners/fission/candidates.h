// Kernels that might compute primitives of a window, each with its price. Korch, framework/calc.py: a
// candidate is the difference of two execution states with one output.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/planners/fission/windows.h"
#include "occupancy_model/device.h"

namespace stitchwork::fission {

/// A kernel of primitives that all lead to one, whose values it stores. Inner values that others read, too,
/// are other kernels' to store.
struct Candidate {
  int sink = -1;
  Mask ops = 0;
  Mask inputs = 0;  ///< primitives of the window whose values it reads
  double us = 0;    ///< modelled: kernel, memsets of its atomics, a launch gap
};

/// How many candidates there may be.
struct CandidateLimits {
  int ops = 16;        ///< of one
  int window = 4000;   ///< of a window
  bool convex = true;  ///< nothing outside lies on a path between two of its primitives (execution states)
};

/// Prices kernels of a graph for a device; equal ones are priced once.
class Prices {
 public:
  Prices(const astitch::Nodes& nodes, const Device& device) : nodes_(nodes), device_(device) {}

  /// Of a kernel of these primitives, ascending, that stores `sink`, as one TVM function; nullopt: TVM makes
  /// several of them. A copy alone is a copy of the device's.
  std::optional<double> us(const std::vector<NodeId>& primitives, NodeId sink);
  /// Of a kernel as it is.
  double us(const KernelPlan& kernel) const;

  /// The kernel that `us` prices.
  KernelPlan kernel(const std::vector<NodeId>& primitives, NodeId sink) const;
  /// Bytes as they lie: what a copy reads through index maps no copy of the device's can repeat.
  bool is_copy(const std::vector<NodeId>& primitives) const;

  const astitch::Nodes& nodes() const { return nodes_; }

 private:
  const astitch::Nodes& nodes_;
  const Device& device_;
  std::mutex mutex_;
  std::map<std::string, std::optional<double>> known_;
};

/// The primitives of a set, ascending by op.
std::vector<NodeId> primitives_of(const Window& window, Mask set);
/// What primitives of the set read of the window outside it.
Mask inputs_of(const Window& window, Mask set);
/// Nothing outside the set lies on a path between two of it.
bool is_convex(const Window& window, Mask set);

/// Sets in which everything leads to the sink, the small ones first, of at most `ops` primitives, all but the
/// sink of `inner`; the first `most` of them.
std::vector<Mask> cones(const Window& window, int sink, Mask inner, int ops, std::size_t most);

/// What a compiler made one kernel of: its primitives, and the one it stores.
struct Cone {
  int sink = -1;
  Mask ops = 0;
};

/// Every cone of the window within the limits that is one kernel, and the `known` ones, by sink; not those
/// for which another stores the same, reads nothing beyond and costs no more. Single primitives always are
/// kernels.
std::vector<Candidate> candidates(const Window& window, Prices& prices, const CandidateLimits& limits,
                                  const std::vector<Cone>& known = {});

}  // namespace stitchwork::fission
