#include "analysis/facts/post_dominators.h"

namespace stitchwork {

PostDominators::PostDominators(const std::vector<std::vector<int>>& readers)
    : parent_(readers.size(), kSink), depth_(readers.size(), 1) {
  const auto depth = [&](int node) { return node == kSink ? 0 : depth_[static_cast<std::size_t>(node)]; };
  for (std::size_t n = readers.size(); n-- > 0;) {
    if (readers[n].empty()) continue;
    int meet = readers[n].front();
    for (int other : readers[n])
      while (meet != other) {  // the lowest common ancestor of all readers
        int& deeper = depth(meet) >= depth(other) ? meet : other;
        deeper = parent_[static_cast<std::size_t>(deeper)];
      }
    parent_[n] = meet;
    depth_[n] = depth(meet) + 1;
  }
}

bool PostDominators::meets_at(int node, int other) const {
  const int depth = depth_[static_cast<std::size_t>(other)];
  while (node != kSink && node != other && depth_[static_cast<std::size_t>(node)] > depth)
    node = immediate(node);
  return node == other;
}

}  // namespace stitchwork
