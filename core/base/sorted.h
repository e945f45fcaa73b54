// Sets of ids as ascending vectors: small, in order, quick to walk.
#pragma once

#include <algorithm>
#include <vector>

namespace stitchwork {

template <typename T>
bool contains_sorted(const std::vector<T>& list, T value) {
  return std::binary_search(list.begin(), list.end(), value);
}

template <typename T>
void insert_sorted(std::vector<T>& list, T value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at == list.end() || *at != value) list.insert(at, value);
}

template <typename T>
void erase_sorted(std::vector<T>& list, T value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at != list.end() && *at == value) list.erase(at);
}

template <typename T>
void sort_unique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace stitchwork
