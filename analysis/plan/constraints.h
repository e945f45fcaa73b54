// What edits ask of a planner, with their ops found in a graph. Planners consult it where they decide;
// afterwards `require_honoured` asks whether the plan is what was wanted.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/plan/plan.h"

namespace stitchwork {

struct Constraints {
  using Pair = std::pair<NodeId, NodeId>;

  std::vector<Pair> together;               ///< merge: one kernel computes both
  std::vector<Pair> apart;                  ///< forbid_merge, split: no kernel computes both
  std::map<NodeId, Scheme> schemes;         ///< scheme
  std::map<NodeId, int> block;              ///< block: threads of the kernel of an op
  std::map<NodeId, int> split_factor;       ///< split_factor: blocks a row of a reduction
  std::map<NodeId, std::string> templates;  ///< template: text of the kernel of an op
  std::map<NodeId, int> residency;          ///< residency: most blocks an SM holds of the kernel of an op

  /// The forbidden pair that a kernel with all of `left` and all of `right` would hold, if any. Both are
  /// callables: is this op in it?
  template <typename InLeft, typename InRight>
  std::optional<Pair> keeps_apart(InLeft in_left, InRight in_right) const {
    for (const auto& [a, b] : apart) {
      if ((in_left(a) && in_right(b)) || (in_left(b) && in_right(a))) return Pair{a, b};
    }
    return std::nullopt;
  }

  /// Whether any of them names one of `ops` (ascending).
  bool are_about(std::span<const NodeId> ops) const;
  /// Whether some two of `ops` (ascending) are to be in one kernel.
  bool join(std::span<const NodeId> ops) const;

  /// The first entry of `wanted` for one of `ops` (ascending).
  template <typename Value>
  static const std::pair<const NodeId, Value>* find(const std::map<NodeId, Value>& wanted,
                                                    std::span<const NodeId> ops) {
    for (const auto& entry : wanted) {
      for (const NodeId op : ops)
        if (op == entry.first) return &entry;
    }
    return nullptr;
  }

  /// The ops of `together`, `apart`, `schemes` and `split_factor`, ascending: those whose kernels are named.
  std::vector<NodeId> named() const;
};

/// Throws Error for what no plan on this device can honour: unknown ops (close names in the hint), ops that
/// no kernel computes, a merge of what must be apart, blocks the device cannot launch, rows split more often
/// than they are long.
Constraints constraints(const Graph& graph, const Device& device, const std::vector<Edit>& edits);

/// The readers of `op` that compute something, found through pure index maps: what `split` keeps apart.
std::vector<NodeId> computing_readers(const Computation& computation, NodeId op);

/// Throws Error naming the first edit that `plan` is not made by.
void require_honoured(const Graph& graph, const FusionPlan& plan, const std::vector<Edit>& edits);

/// Edits are decisions too, rules "override.<kind>".
std::vector<Decision> edit_decisions(const std::vector<Edit>& edits);

}  // namespace stitchwork
