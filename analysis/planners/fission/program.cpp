#include "analysis/planners/fission/program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <limits>
#include <tuple>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"

namespace stitchwork::fission {
namespace {

/// Parts of a nanosecond that decide between equal costs. More than 64 kernels, as many as a window
/// has primitives, take of them.
constexpr std::int64_t kParts = 65'536;
/// Parts that a kernel takes, and its number at most; so that 64 times both are below kParts.
constexpr std::int64_t kOfAKernel = 511;

std::int64_t price(const Candidate& candidate, std::size_t number) {
  // Multiples of an odd number spread over the residues, so that sums of few of them differ.
  constexpr std::size_t kSpread = 2'654'435'761;  // Knuth's multiplicative hash, 2^32 over the golden ratio
  return std::llround(candidate.us * 1e3) * kParts + kOfAKernel +
         static_cast<std::int64_t>(((number + 1) * kSpread >> 8U) % static_cast<std::size_t>(kOfAKernel));
}

std::int64_t cost_of(std::span<const Candidate> candidates, const std::vector<int>& chosen) {
  std::int64_t cost = 0;
  for (const int k : chosen) cost += price(candidates[at(k)], at(k));
  return cost;
}

/// The cheapest way to a set of values that are still needed.
struct Way {
  std::int64_t cost = 0;
  Mask before = 0;  ///< what was needed before the last choice
  int chosen = -1;

  /// Of ways that cost the same the least sets and numbers, so that it does not matter which was found first.
  auto operator<=>(const Way&) const = default;
};

/// Ways by what is still needed: open addressing, as a window has up to a million of them.
class Ways {
 public:
  struct Entry {
    Mask needed = 0;
    Way way;
  };

  std::size_t size() const { return entries_.size(); }
  const std::vector<Entry>& entries() const { return entries_; }

  /// Keeps the least way to each set.
  void reach(Mask needed, const Way& way) {
    if (2 * (entries_.size() + 1) > slots_.size()) rehash(std::max(kFirstSlots, 2 * slots_.size()));
    int& slot = slots_[place(needed)];
    if (slot == kNone) {
      slot = static_cast<int>(entries_.size());
      entries_.push_back({needed, way});
    } else if (way < entries_[at(slot)].way) {
      entries_[at(slot)].way = way;
    }
  }

  const Way& at_set(Mask needed) const {
    const int slot = slots_.empty() ? kNone : slots_[place(needed)];
    SW_CHECK(slot != kNone, "no way leads here");
    return entries_[at(slot)].way;
  }

  /// Keeps the ways that look cheapest: with the least that each value still needed costs by itself.
  void keep_cheapest(const std::vector<std::int64_t>& least, std::size_t most) {
    std::vector<std::tuple<std::int64_t, Mask, int>> order;
    for (std::size_t e = 0; e < entries_.size(); ++e) {
      std::int64_t cost = entries_[e].way.cost;
      for (Mask rest = entries_[e].needed; rest != 0; rest &= rest - 1)
        cost += least[at(std::countr_zero(rest))];
      order.emplace_back(cost, entries_[e].needed, static_cast<int>(e));
    }
    std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(most));
    std::vector<Entry> kept;
    for (std::size_t i = 0; i < most; ++i) kept.push_back(entries_[at(std::get<2>(order[i]))]);
    entries_ = std::move(kept);
    rehash(2 * std::bit_ceil(most));
  }

 private:
  /// No quantity: a slot that holds no entry.
  static constexpr int kNone = -1;
  /// A choice, not measured: of the smallest windows no table grows. A power of two, as all sizes are.
  static constexpr std::size_t kFirstSlots = 64;

  /// Where the set is, or would be.
  std::size_t place(Mask needed) const {
    std::size_t slot = mixed(needed) & (slots_.size() - 1);
    while (slots_[slot] != kNone && entries_[at(slots_[slot])].needed != needed)
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  /// High bits move the low ones, which choose the slot.
  static Mask mixed(Mask needed) {
    // Derived from the golden ratio, 2^64 over it: Knuth's multiplicative hash.
    constexpr Mask kGolden = 0x9e37'79b9'7f4a'7c15;
    needed *= kGolden;
    return needed ^ (needed >> 32U);
  }

  void rehash(std::size_t slots) {
    slots_.assign(slots, kNone);
    for (std::size_t e = 0; e < entries_.size(); ++e) slots_[place(entries_[e].needed)] = static_cast<int>(e);
  }

  std::vector<int> slots_;  ///< into entries
  std::vector<Entry> entries_;
};

/// What is chosen, and whether nothing was left out on the way.
struct ByStates {
  std::vector<int> chosen;
  bool all = true;
};

/// A candidate of a primitive, as the states ask for it.
struct Choice {
  int candidate = 0;
  std::int64_t price = 0;
  Mask inputs = 0;
};

/// Readers first: each primitive that is needed gets each of its kernels. No way that costs more than `most`
/// matters. Where more than `most_states` sets are needed at once some are left out.
ByStates by_states(const Window& window, std::span<const Candidate> candidates, std::int64_t most,
                   std::size_t most_states) {
  ByStates result;
  std::vector<std::int64_t> least(at(window.size()), std::numeric_limits<std::int64_t>::max());
  std::vector<std::vector<Choice>> of_sink(at(window.size()));
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    const Candidate& candidate = candidates[k];
    const std::int64_t costs = price(candidate, k);
    of_sink[at(candidate.sink)].push_back({static_cast<int>(k), costs, candidate.inputs});
    least[at(candidate.sink)] = std::min(least[at(candidate.sink)], costs);
  }
  std::vector<Ways> ways(at(window.size() + 1));  // by primitive: before its kernel is chosen
  ways.back().reach(window.required, {});
  for (int i = window.size() - 1; i >= 0; --i) {
    interruption_point();
    Ways& next = ways[at(i)];
    for (const auto& [needed, way] : ways[at(i) + 1].entries()) {
      if (!has(needed, i)) {
        next.reach(needed, {way.cost, needed, -1});
        continue;
      }
      for (const Choice& choice : of_sink[at(i)])
        if (const std::int64_t cost = way.cost + choice.price; cost <= most)
          next.reach((needed & ~only(i)) | choice.inputs, {cost, needed, choice.candidate});
    }
    if (next.size() <= most_states) continue;
    next.keep_cheapest(least, most_states);
    result.all = false;
  }
  if (ways.front().size() == 0) return {{}, false};  // all that is left costs more
  Mask needed = 0;
  for (std::size_t i = 0; i < at(window.size()); ++i) {
    const Way& way = ways[i].at_set(needed);
    if (way.chosen >= 0) result.chosen.push_back(way.chosen);
    needed = way.before;
  }
  std::ranges::sort(result.chosen);
  return result;
}

/// What there is when a solver gives up without a solution: readers first, the cheapest kernel of each.
std::vector<int> greedy(const Window& window, std::span<const Candidate> candidates) {
  std::vector<int> best(at(window.size()), -1), result;
  for (std::size_t k = 0; k < candidates.size(); ++k)
    if (int& of_sink = best[at(candidates[k].sink)];
        of_sink < 0 || candidates[k].us < candidates[at(of_sink)].us)
      of_sink = static_cast<int>(k);
  Mask needed = window.required;
  for (int i = window.size() - 1; i >= 0; --i) {
    if (!has(needed, i)) continue;
    result.push_back(best[at(i)]);
    needed |= candidates[at(best[at(i)])].inputs;
  }
  std::ranges::sort(result);
  return result;
}

}  // namespace

ilp::BinaryProgram program(const Window& window, std::span<const Candidate> candidates) {
  const auto columns = static_cast<int>(candidates.size());
  ilp::BinaryProgram result{false, {}, columns, {}};
  std::vector<ilp::Row> stored(
      at(window.size()));  // a value that is read is stored: columns behind candidates
  Mask read = 0;
  for (int k = 0; k < columns; ++k) {
    const Candidate& candidate = candidates[at(k)];
    result.costs.push_back(static_cast<double>(price(candidate, at(k))) / static_cast<double>(kParts));
    stored[at(candidate.sink)].terms.push_back({k, 1});
    read |= candidate.inputs;
  }
  std::vector<int> value(at(window.size()), -1);  // the column that says whether it is stored
  for (int i = 0; i < window.size(); ++i) {
    ilp::Row row = stored[at(i)];
    if (has(window.required, i)) {
      row.least = 1;
      result.rows.push_back(row);
    }
    if (!has(read, i)) continue;
    value[at(i)] = static_cast<int>(result.costs.size());
    result.costs.push_back(0);
    row.least = 0;
    row.terms.push_back({value[at(i)], -1});
    result.rows.push_back(std::move(row));
  }
  for (int k = 0; k < columns; ++k)
    for (Mask inputs = candidates[at(k)].inputs; inputs != 0; inputs &= inputs - 1)
      result.rows.push_back({{{value[at(std::countr_zero(inputs))], 1}, {k, -1}}, 0});
  return result;
}

bool is_complete(const Window& window, std::span<const Candidate> candidates,
                 const std::vector<int>& chosen) {
  Mask needed = window.required, stored = 0;
  for (const int k : chosen) {
    needed |= candidates[at(k)].inputs;
    stored |= only(candidates[at(k)].sink);
  }
  return (needed & ~stored) == 0;
}

Selection select(const Window& window, std::span<const Candidate> candidates, const SolverLimits& limits) {
  Selection result;
  result.chosen = greedy(window, candidates);
  if (limits.states > 0) {
    ByStates found = by_states(window, candidates, cost_of(candidates, result.chosen), limits.states);
    result.optimal = found.all;
    if (!found.chosen.empty()) result.chosen = std::move(found.chosen);
  }
  if (!result.optimal && limits.nodes > 0) {
    const ilp::Solution solution = ilp::solve(program(window, candidates), limits.nodes);
    result.optimal = solution.optimal;
    result.bound_us = std::max(0.0, std::floor(solution.bound) / 1e3);
    const bool complete = solution.feasible && is_complete(window, candidates, solution.taken);
    SW_CHECK(complete || !solution.optimal, "CBC's optimum of {} candidates leaves a value unstored",
             candidates.size());
    if (complete && cost_of(candidates, solution.taken) < cost_of(candidates, result.chosen))
      result.chosen = solution.taken;
  }
  for (const int k : result.chosen) result.us += candidates[at(k)].us;
  if (result.optimal) result.bound_us = result.us;
  return result;
}

}  // namespace stitchwork::fission
