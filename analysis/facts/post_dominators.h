// Where all paths from a node of a graph meet first.
#pragma once

#include <cstddef>
#include <vector>

namespace stitchwork {

/// Immediate post-dominators of a directed acyclic graph whose nodes are numbered so that readers come after
/// what they read. Nodes without readers lead to one virtual sink behind all of them.
class PostDominators {
 public:
  static constexpr int kSink = -1;

  explicit PostDominators(const std::vector<std::vector<int>>& readers);

  /// kSink: only there do its paths meet.
  int immediate(int node) const { return parent_[static_cast<std::size_t>(node)]; }
  /// Whether every path from `node` comes past `other`, which counts as doing so for itself.
  bool meets_at(int node, int other) const;

 private:
  std::vector<int> parent_;
  std::vector<int> depth_;  ///< in the tree of post-dominators, below the sink
};

}  // namespace stitchwork
