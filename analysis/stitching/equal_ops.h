// Ops that need one piece of code between them: an optimiser does the same to each of its tensors.
//
// A *piece* is what values inside the model's kernels connect, but for hubs: scalars that many ops read (a
// learning rate) tie their readers to nothing. Pieces are equal if their ops are, up to sizes and to what
// they read from outside: generated code has one body for all of them (analysis/schedule/share.h), so limits
// that bound the code of a kernel count them once.
#pragma once

#include <set>
#include <vector>

#include "analysis/plan/plan.h"
#include "analysis/stitching/nodes.h"

namespace stitchwork::astitch {

/// By node: ops of the same number stand at the same place of equal pieces; -1: there are too few of them to
/// share a body, or none.
std::vector<int> equal_ops(const Nodes& nodes);

/// Counts ops or groups as often as they need code.
class CodeSize {
 public:
  /// `code`: -1 for what is equal to nothing else.
  void add(int code);
  void add(const CodeSize& other);
  int size() const { return alone_ + static_cast<int>(codes_.size()); }
  /// The size of both together.
  int with(const CodeSize& other) const;

 private:
  int alone_ = 0;
  std::vector<int> codes_;  ///< ascending, distinct
};

/// What tells bodies of groups apart: their ops and the parts of their mapping that all that share a body
/// have in common.
using GroupCode = std::vector<std::int64_t>;
GroupCode group_code(const Nodes& nodes, const std::vector<NodeId>& ops, const Mapping& mapping);

/// Bodies that `groups` (OpGroup or Group) need between them.
template <typename Groups>
int bodies(const Nodes& nodes, const Groups& groups) {
  std::set<GroupCode> distinct;
  for (const auto& group : groups) distinct.insert(group_code(nodes, group.ops, group.mapping));
  return static_cast<int>(distinct.size());
}

}  // namespace stitchwork::astitch
