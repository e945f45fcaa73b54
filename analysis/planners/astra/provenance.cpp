#include "analysis/planners/astra/provenance.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "core/base/at.h"

namespace stitchwork::astra {
namespace {

/// Sets of dots, each kept once and named by its number; 0 is the empty one.
class DotSets {
 public:
  DotSets(std::size_t dots, bool exact) : words_(exact ? (dots + 63) / 64 : 0), exact_(exact) {
    sets_.resize(words_, 0);
    if (exact_) by_hash_[hash(0)].push_back(0);
  }

  int with_dot(int set, std::size_t dot) {
    if (!exact_) return fresh_++;
    std::vector<std::uint64_t> made(begin(set), begin(set) + static_cast<std::ptrdiff_t>(words_));
    made[dot / 64] |= std::uint64_t{1} << (dot % 64);
    return keep(made);
  }

  int join(int a, int b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    const auto [at_pair, is_new] = joined_.try_emplace(std::minmax(a, b), 0);
    if (!is_new) return at_pair->second;
    if (!exact_) return at_pair->second = fresh_++;
    std::vector<std::uint64_t> made(words_);
    std::transform(begin(a), begin(a) + static_cast<std::ptrdiff_t>(words_), begin(b), made.begin(),
                   [](std::uint64_t x, std::uint64_t y) { return x | y; });
    return at_pair->second = keep(made);
  }

 private:
  std::vector<std::uint64_t>::const_iterator begin(int set) const {
    return sets_.begin() + static_cast<std::ptrdiff_t>(at(set) * words_);
  }
  std::uint64_t hash(int set) const {
    // FNV's offset and prime, of 64 bits.
    std::uint64_t value = 14695981039346656037ULL;
    for (std::size_t w = 0; w < words_; ++w)
      value = (value ^ begin(set)[static_cast<std::ptrdiff_t>(w)]) * 1099511628211ULL;
    return value;
  }
  int keep(const std::vector<std::uint64_t>& made) {
    const int next = static_cast<int>(sets_.size() / std::max<std::size_t>(1, words_));
    sets_.insert(sets_.end(), made.begin(), made.end());
    std::vector<int>& alike = by_hash_[hash(next)];
    for (const int set : alike)
      if (std::equal(begin(set), begin(set) + static_cast<std::ptrdiff_t>(words_), begin(next))) {
        sets_.resize(at(next) * words_);
        return set;
      }
    alike.push_back(next);
    return next;
  }

  std::size_t words_;
  bool exact_;
  int fresh_ = 1;
  std::vector<std::uint64_t> sets_;
  std::unordered_map<std::uint64_t, std::vector<int>> by_hash_;
  std::map<std::pair<int, int>, int> joined_;
};

}  // namespace

std::vector<int> provenance(const Computation& computation, const Products& products,
                            const std::vector<Ladder>& ladders, std::size_t most_dots) {
  DotSets sets(products.dots.size(), products.dots.size() <= most_dots);
  std::vector<int> reaching(at(computation.size()), 0);  // by op: dots that reach it, itself included
  std::vector<int> before(at(computation.size()), 0);    // itself excluded
  std::size_t dot = 0;
  for (const Node& node : computation.nodes) {
    int set = 0;
    for (const NodeId read : node.operands) set = sets.join(set, reaching[at(read)]);
    before[at(node.id)] = set;
    reaching[at(node.id)] = node.op == Op::kDot ? sets.with_dot(set, dot++) : set;
  }
  std::vector<int> result;
  for (const Ladder& ladder : ladders) {
    int set = ladder.start == kNoNode ? 0 : reaching[at(ladder.start)];
    for (const int rung : ladder.rungs) set = sets.join(set, before[at(products.list[at(rung)].dot)]);
    result.push_back(set);
  }
  return result;
}

}  // namespace stitchwork::astra
