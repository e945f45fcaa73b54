#include "analysis/planners/fusionstitching/ilp/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "analysis/planners/fusionstitching/ilp/dominance.h"
#include "analysis/planners/fusionstitching/ilp/set_packing.h"
#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/sha256.h"
#include "core/base/sorted.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork::fusionstitching {
namespace {

/// What a nanosecond of scores is divided into by ties: below half of it, so that no sum of other scores
/// changes its order by rounding alone.
constexpr double kTieNs = 0.5;

/// Makes the optimum unique, so that it does not depend on how the solver was built: a number in [0, 0.5) ns
/// from the names of the pattern's ops.
double tie_ns(const Ops& ops, const Pattern& pattern) {
  std::string names;
  for (const NodeId id : pattern.ops) names += ops.name(id) + "\n";
  const std::uint64_t bits = std::stoull(sha256_hex(names).substr(0, 13), nullptr, 16);
  return kTieNs * std::ldexp(static_cast<double>(bits), -52);
}

[[noreturn]] void no_pattern(const Ops& ops, const std::vector<NodeId>& set) {
  throw Error(fmt::format("override: no kernel without barriers of the grid computes {} and {} together",
                          ops.name(set.front()), ops.name(set.back())),
              "leave the override out, or plan with astitch");
}

class Solver {
 public:
  Solver(const Ops& ops, const std::vector<Pattern>& patterns, const Required& required, Scores& scores)
      : ops_(ops), patterns_(patterns), scores_(scores), required_of_(ops.size(), -1) {
    for (const Pattern& pattern : patterns) ties_.push_back(tie_ns(ops, pattern));
    for (std::size_t s = 0; s < required.size(); ++s)
      for (const NodeId id : required[s]) required_of_[static_cast<std::size_t>(id)] = static_cast<int>(s);
    required_ = &required;
  }

  Choice run() {
    Choice choice;
    int cycle_rounds = 0;
    for (bool settled = false; !settled;) {
      interruption_point();
      solve_parts(choice);
      ++choice.rounds;
      settled = true;
      const std::vector<Cycle> cycles = find_cycles(ops_, patterns_, choice.patterns);
      const bool in_circles = !cycles.empty() && ++cycle_rounds > kMostCycleRounds;
      if (in_circles) choice.limit = fmt::format("cycles are left behind {} programs", kMostCycleRounds);
      if (!choice.limit.empty()) {
        leave_cycles(choice.patterns);
        evaluate(choice.patterns);
        break;
      }
      for (const Cycle& cycle : cycles) {
        SetPacking::Row cut{cycle.patterns, static_cast<int>(cycle.patterns.size()) - 1, false};
        cuts_.push_back(std::move(cut));
        choice.cycles.push_back(cycle);
        settled = false;
      }
      if (evaluate(choice.patterns)) settled = false;
    }
    for (const int p : choice.patterns) choice.us += scores_.us[at(p)];
    return choice;
  }

 private:
  /// Takes the pattern of least score out of every cycle, those of required sets last.
  void leave_cycles(std::vector<int>& chosen) const {
    const auto rank = [&](int p) {
      const auto& members = patterns_[at(p)].ops;
      const bool forced = std::any_of(members.begin(), members.end(), [&](NodeId id) {
        return required_of_[static_cast<std::size_t>(id)] >= 0;
      });
      return std::tuple(forced, scores_.us[at(p)], p);
    };
    for (auto cycles = find_cycles(ops_, patterns_, chosen); !cycles.empty();
         cycles = find_cycles(ops_, patterns_, chosen))
      for (const Cycle& cycle : cycles) {
        const int least = *std::min_element(cycle.patterns.begin(), cycle.patterns.end(),
                                            [&](int a, int b) { return rank(a) < rank(b); });
        erase_sorted(chosen, least);
      }
  }

  bool enters(int p) const { return scores_.us[at(p)] >= 0; }
  double weight(int p) const { return std::round(scores_.us[at(p)] * 1e3) + ties_[at(p)]; }

  /// Whether a score changed.
  bool evaluate(const std::vector<int>& chosen) {
    std::vector<int> open;
    for (const int p : chosen)
      if (!scores_.exact[at(p)]) open.push_back(p);
    const std::vector<double> us = scores_.evaluate(open);
    bool changed = false;
    for (std::size_t i = 0; i < open.size(); ++i) {
      scores_.exact[at(open[i])] = true;
      changed = changed || us[i] != scores_.us[at(open[i])];
      scores_.us[at(open[i])] = us[i];
    }
    return changed;
  }

  /// Of `columns`, which are patterns. Rows are ops by the patterns that hold them: one for all that the same
  /// ones hold, none for what only one holds unless it is required.
  SetPacking program(const std::vector<int>& columns) const {
    SetPacking result;
    std::vector<int> column_of(patterns_.size(), -1);
    std::vector<std::vector<int>> holders(ops_.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const int p = columns[c];
      column_of[at(p)] = static_cast<int>(c);
      result.weights.push_back(weight(p));
      for (const NodeId id : patterns_[at(p)].ops) holders[at(id)].push_back(static_cast<int>(c));
    }
    std::map<std::vector<int>, bool> distinct;
    for (std::size_t id = 0; id < holders.size(); ++id) {
      const int set = required_of_[id];
      if (set >= 0 && holders[id].empty()) no_pattern(ops_, (*required_)[at(set)]);
      if (holders[id].size() > 1 || set >= 0) {
        bool& exactly = distinct[std::move(holders[id])];
        exactly = exactly || set >= 0;
      }
    }
    for (const auto& [held, exactly] : distinct) result.rows.push_back({held, 1, exactly});
    for (SetPacking::Row cut : cuts_) {
      if (!std::all_of(cut.columns.begin(), cut.columns.end(), [&](int p) { return enters(p); })) continue;
      for (int& p : cut.columns) p = column_of[at(p)];
      result.rows.push_back(std::move(cut));
    }
    return result;
  }

  void solve_parts(Choice& choice) {
    std::vector<int> entering;
    for (int p = 0; p < static_cast<int>(patterns_.size()); ++p)
      if (enters(p)) entering.push_back(p);
    const SetPacking whole = program(entering);
    if (choice.rounds == 0) choice.rows = static_cast<int>(whole.rows.size());
    choice.patterns.clear();
    // Of this round: parts that stay are not solved again. Columns name the rows of a part but for those of
    // cuts and required ops.
    std::map<std::vector<double>, std::vector<int>> solved;
    for (const PackingPart& part : without_dominated(whole)) {
      std::vector<int> columns;
      for (const int c : part.columns) columns.push_back(entering[at(c)]);
      if (part.program.rows.empty()) {
        choice.patterns.insert(choice.patterns.end(), columns.begin(), columns.end());
        continue;
      }
      std::vector<double> key(columns.begin(), columns.end());
      key.insert(key.end(), part.program.weights.begin(), part.program.weights.end());
      for (const SetPacking::Row& row : part.program.rows)
        if (row.most > 1 || row.columns.size() == 1) key.push_back(row.columns.front());
      key.push_back(static_cast<double>(part.program.rows.size()));
      const auto known = solved_.find(key);
      std::vector<int> taken;
      if (known != solved_.end()) {
        taken = known->second;
      } else {
        const SetPackingSolution solution = solve(part.program, kMostColumnNodes - column_nodes_);
        choice.nodes += solution.nodes;
        column_nodes_ +=
            static_cast<std::int64_t>(solution.nodes) * static_cast<std::int64_t>(columns.size());
        if (!solution.optimal)
          choice.limit =
              fmt::format("no proven optimum of {} patterns behind {} nodes", columns.size(), solution.nodes);
        if (solution.feasible)
          for (const int column : solution.taken) taken.push_back(columns[at(column)]);
      }
      choice.patterns.insert(choice.patterns.end(), taken.begin(), taken.end());
      solved.emplace(std::move(key), std::move(taken));
    }
    solved_ = std::move(solved);
    std::sort(choice.patterns.begin(), choice.patterns.end());
  }

  const Ops& ops_;
  const std::vector<Pattern>& patterns_;
  Scores& scores_;
  const Required* required_ = nullptr;
  std::vector<int> required_of_;  ///< by node: the required set it is of, or -1
  std::vector<double> ties_;      ///< by pattern
  std::vector<SetPacking::Row> cuts_;
  std::int64_t column_nodes_ = 0;  ///< of branch and bound so far, each as many as its program has columns
  std::map<std::vector<double>, std::vector<int>> solved_;  ///< parts of the last round
};

/// By score an op, descending, beside the patterns of `start`: acyclic, of exact scores that are not
/// negative.
Choice extend(const Ops& ops, const std::vector<Pattern>& patterns, const Required& required, Scores& scores,
              const std::vector<int>& start) {
  using Entry = std::pair<double, int>;  // score an op, less the pattern's number: the first of equals
  std::priority_queue<Entry> open;
  std::set<NodeId> forced;
  for (const auto& set : required) forced.insert(set.begin(), set.end());
  const auto is_forced = [&](int p) {
    return std::any_of(patterns[at(p)].ops.begin(), patterns[at(p)].ops.end(),
                       [&](NodeId id) { return forced.contains(id); });
  };
  const auto push = [&](int p) {
    if (scores.us[at(p)] < 0) return;
    // Those of required sets come first, whatever their score.
    const double rank = is_forced(p) ? 1e12 : 0;
    open.emplace(rank + scores.us[at(p)] / static_cast<double>(patterns[at(p)].ops.size()), -p);
  };
  for (int p = 0; p < static_cast<int>(patterns.size()); ++p) push(p);
  Choice choice;
  Contraction contraction(ops);
  std::set<NodeId> taken;
  const auto take = [&](int p) {
    const std::vector<NodeId>& members = patterns[at(p)].ops;
    contraction.contract(members);
    insert_sorted(choice.patterns, p);
    taken.insert(members.begin(), members.end());
    choice.us += scores.us[at(p)];
  };
  for (const int p : start) take(p);
  while (!open.empty()) {
    const int p = -open.top().second;
    open.pop();
    const std::vector<NodeId>& members = patterns[at(p)].ops;
    if (std::any_of(members.begin(), members.end(), [&](NodeId id) { return taken.contains(id); })) continue;
    if (!scores.exact[at(p)]) {
      scores.us[at(p)] = scores.evaluate({p}).front();
      scores.exact[at(p)] = true;
      push(p);
      continue;
    }
    if (contraction.makes_cycle(members)) {
      std::vector<int> with = choice.patterns;
      insert_sorted(with, p);
      for (Cycle& cycle : find_cycles(ops, patterns, with)) choice.cycles.push_back(std::move(cycle));
      continue;
    }
    take(p);
  }
  for (const auto& set : required)
    if (!taken.contains(set.front())) no_pattern(ops, set);
  choice.rounds = 1;
  return choice;
}

/// Of the patterns that are not `left_out`; none where that program reaches a limit, too.
template <typename LeftOut>
Choice choose_without(const Ops& ops, const std::vector<Pattern>& patterns, Scores scores,
                      const LeftOut& left_out) {
  bool fewer = false;
  for (int p = 0; p < static_cast<int>(patterns.size()); ++p) {
    if (!left_out(patterns[at(p)])) continue;
    scores.us[at(p)] = -1;
    scores.exact[at(p)] = fewer = true;
  }
  if (!fewer) return {};
  Choice found = Solver(ops, patterns, {}, scores).run();
  return found.limit.empty() ? found : Choice{};
}

}  // namespace

Choice choose_greedily(const Ops& ops, const std::vector<Pattern>& patterns, const Required& required,
                       Scores& scores) {
  return extend(ops, patterns, required, scores, {});
}

Choice choose_optimal(const Ops& ops, const std::vector<Pattern>& patterns, const Required& required,
                      Scores& scores) {
  Choice found = Solver(ops, patterns, required, scores).run();
  if (found.limit.empty()) return found;
  std::erase_if(found.patterns, [&](int p) { return scores.us[at(p)] < 0; });
  Choice more = extend(ops, patterns, required, scores, found.patterns);
  found.patterns = std::move(more.patterns);
  found.us = more.us;
  const auto offer = [&](Choice other) {
    if (other.us <= found.us) return;
    other.limit = found.limit;
    found = std::move(other);
  };
  offer(choose_greedily(ops, patterns, required, scores));
  if (!required.empty()) return found;
  // Products, and exploration's patterns that overlap each other, are what makes programs hard: without them
  // most are solved at once, and may save more.
  const auto multiplies = [&](const Pattern& pattern) {
    return std::ranges::any_of(pattern.ops, [&](NodeId id) { return is_product(ops[id].kind); });
  };
  offer(choose_without(ops, patterns, scores, multiplies));
  offer(choose_without(ops, patterns, scores,
                       [](const Pattern& pattern) { return pattern.source == PatternSource::kExploratory; }));
  return found;
}

}  // namespace stitchwork::fusionstitching
