#include "analysis/planners/fusionstitching/ilp/choose.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "core/base/at.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

/// Of the patterns of these numbers.
Choice choose(const Ops& ops, bool optimal, const std::vector<Pattern>& patterns,
              const std::vector<int>& candidates, const Required& required, Scores& scores) {
  Scores among = scores;
  among.us.assign(patterns.size(), -1);
  among.exact.assign(patterns.size(), true);
  for (const int p : candidates) {
    among.us[at(p)] = scores.us[at(p)];
    among.exact[at(p)] = scores.exact[at(p)];
  }
  Choice choice = optimal ? choose_optimal(ops, patterns, required, among)
                          : choose_greedily(ops, patterns, required, among);
  for (const int p : candidates) {
    scores.us[at(p)] = among.us[at(p)];
    scores.exact[at(p)] = among.exact[at(p)];
  }
  return choice;
}

/// Adds to the choice, for as long as that saves time, patterns of what it leaves; new ones join `patterns`.
/// Where a limit ended the search the choice stays.
Choice with_remainders(const Ops& ops, const Partitions& partitions, const IlpOptions& options, bool optimal,
                       const Required& required, std::vector<Pattern>& patterns, Scorer& scorer,
                       Scores& scores, Choice choice) {
  std::map<std::vector<NodeId>, int> number;
  for (int p = 0; p < static_cast<int>(patterns.size()); ++p) number.emplace(patterns[at(p)].ops, p);
  for (;;) {
    std::vector<int> candidates = choice.patterns;
    for (Pattern& pattern : remainders(ops, partitions, options, patterns, choice)) {
      const auto [known, fresh] = number.emplace(pattern.ops, static_cast<int>(patterns.size()));
      insert_sorted(candidates, known->second);
      if (!fresh) continue;
      scores.us.push_back(scorer.upper_bound(pattern.ops));
      scores.exact.push_back(false);
      patterns.push_back(std::move(pattern));
    }
    Choice next = choose(ops, optimal, patterns, candidates, required, scores);
    if (!next.limit.empty() || next.us <= choice.us) return choice;
    next.rows = choice.rows;
    next.rounds += choice.rounds;
    next.nodes += choice.nodes;
    next.limit = choice.limit;
    next.cycles.insert(next.cycles.begin(), choice.cycles.begin(), choice.cycles.end());
    choice = std::move(next);
  }
}

}  // namespace

Choice choose(const Ops& ops, const Partitions& partitions, const IlpOptions& options,
              const Required& required, std::vector<Pattern>& patterns, Scorer& scorer, Scores& scores) {
  std::vector<int> all(patterns.size()), unexplored;
  std::iota(all.begin(), all.end(), 0);
  std::ranges::copy_if(all, std::back_inserter(unexplored),
                       [&](int p) { return patterns[at(p)].source != PatternSource::kExploratory; });
  std::optional<Choice> best;
  const auto offer = [&](bool optimal, const std::vector<int>& candidates) {
    Choice choice = choose(ops, optimal, patterns, candidates, required, scores);
    if (options.remainders)
      choice = with_remainders(ops, partitions, options, optimal, required, patterns, scorer, scores,
                               std::move(choice));
    const std::string limit = best ? best->limit : choice.limit;
    if (!best || choice.us > best->us) best = std::move(choice);
    best->limit = limit;
  };
  if (options.optimal) offer(true, all);
  if (!options.optimal || options.remainders) offer(false, all);
  if (options.remainders && !best->limit.empty() && required.empty()) offer(true, unexplored);
  return std::move(*best);
}

}  // namespace stitchwork::fusionstitching
