// Which things belong together, as pairs of them are joined one by one.
#pragma once

#include <algorithm>
#include <map>

namespace stitchwork {

/// Sets of keys, each named by its least key. A key that was never joined is a set by itself.
template <typename Key>
class DisjointSets {
 public:
  /// The least key of `key`'s set.
  Key find(Key key) const {
    for (auto at = less_.find(key); at != less_.end(); at = less_.find(key)) key = at->second;
    return key;
  }

  void join(const Key& a, const Key& b) {
    const Key x = find(a), y = find(b);
    if (x == y) return;
    less_[std::max(x, y)] = std::min(x, y);
    // What was asked for comes to its set in one step the next time.
    if (a != x) less_[a] = std::min(x, y);
    if (b != y) less_[b] = std::min(x, y);
  }

 private:
  std::map<Key, Key> less_;  ///< of every key but the least of a set, a lesser one of the set
};

}  // namespace stitchwork
