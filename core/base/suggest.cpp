#include "core/base/suggest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stitchwork {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

std::vector<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& candidates,
                                      std::size_t count) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const std::string_view candidate : candidates)
    ranked.emplace_back(edit_distance(word, candidate), candidate);
  count = std::min(count, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count), ranked.end());
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(ranked[i].second);
  return names;
}

std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::vector<std::string_view> first = nearest(word, candidates, 1);
  if (first.empty() || edit_distance(word, first[0]) > (word.size() + 1) / 3) return {};
  return first[0];
}

}  // namespace stitchwork
