#include "simulator/cache/update_tally.h"

#include <algorithm>
#include <functional>

namespace stitchwork::sim {

void UpdateTally::begin(std::size_t stretch) {
  if (stretch == now_) return;
  now_ = stretch;
  recent_ = {};
}

void UpdateTally::add(std::uint64_t word, std::uint64_t times) {
  const std::uint64_t page = word / kPageWords;
  Recent& recent = recent_[page % kRecent];
  if (recent.page != page) recent = {page, find(page)};
  (*recent.counts)[word % kPageWords] += times;
}

void UpdateTally::add_awaited(std::uint64_t word) {
  if (word != last_awaited_) awaited_.insert(last_awaited_ = word);
}

UpdateTally::Counts* UpdateTally::find(std::uint64_t page) {
  if (stretches_.size() <= now_) stretches_.resize(now_ + 1);
  std::unique_ptr<Counts>& counts = stretches_[now_][page];
  if (!counts) counts = std::make_unique<Counts>();
  return counts.get();
}

std::uint64_t UpdateTally::most(const Counts& counts, std::uint64_t page) const {
  if (awaited_.empty()) return *std::ranges::max_element(counts);
  std::uint64_t most = 0;
  for (std::uint64_t w = 0; w < kPageWords; ++w)
    if (counts[w] > most && !awaited_.contains(page * kPageWords + w)) most = counts[w];
  return most;
}

std::uint64_t UpdateTally::most(std::size_t stretch) const {
  if (stretch >= stretches_.size()) return 0;
  std::uint64_t result = 0;
  for (const auto& [page, counts] : stretches_[stretch]) result = std::max(result, most(*counts, page));
  return result;
}

std::uint64_t UpdateTally::most() const {
  std::uint64_t result = 0;
  std::unordered_set<std::uint64_t> seen;
  for (std::size_t s = 0; s < stretches_.size(); ++s)
    for (const auto& [page, first] : stretches_[s]) {
      if (!seen.insert(page).second) continue;
      Counts sum = *first;
      for (std::size_t t = s + 1; t < stretches_.size(); ++t)
        if (const auto more = stretches_[t].find(page); more != stretches_[t].end())
          std::ranges::transform(sum, *more->second, sum.begin(), std::plus{});
      result = std::max(result, most(sum, page));
    }
  return result;
}

}  // namespace stitchwork::sim
