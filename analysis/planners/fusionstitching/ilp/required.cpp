#include "analysis/planners/fusionstitching/ilp/required.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/planners/fusionstitching/ilp/template_text.h"
#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

/// Steps that one of `set` reaches, along consumers or producers.
std::set<NodeId> reached(const Ops& ops, const std::vector<NodeId>& set,
                         std::vector<NodeId> StepFacts::*along) {
  std::set<NodeId> seen;
  std::vector<NodeId> open = set;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const NodeId next : ops[id].*along)
      if (seen.insert(next).second) open.push_back(next);
  }
  return seen;
}

std::vector<NodeId> with_paths(const Ops& ops, std::vector<NodeId> set) {
  const std::set<NodeId> below = reached(ops, set, &StepFacts::consumers);
  for (const NodeId id : reached(ops, set, &StepFacts::producers))
    if (below.contains(id)) insert_sorted(set, id);
  return set;
}

/// What an override wants in one kernel.
struct Wanted {
  std::vector<NodeId> ops;  ///< ascending
  std::string edit;
};

std::vector<Wanted> wanted_sets(const Ops& ops, const Constraints& constraints) {
  std::vector<Wanted> result;
  for (const auto& [a, b] : constraints.together) {
    result.push_back({{a, b}, fmt::format("override 'merge {} and {}'", ops.name(a), ops.name(b))});
    sort_unique(result.back().ops);
  }
  for (const auto& [of, text] : constraints.templates) {
    result.push_back({{of}, fmt::format("override 'template of {}'", ops.name(of))});
    for (const OpSchedule& schedule : parse_template(*ops.nodes->computation, text))
      insert_sorted(result.back().ops, schedule.op);
  }
  return result;
}

void require_fusible(const Ops& ops, const std::vector<NodeId>& set, const Wanted& wanted) {
  for (const NodeId id : set) {
    if (ops[id].fusible) continue;
    if (contains_sorted(wanted.ops, id))
      throw Error(fmt::format("{}: {} is in no kernel with others", wanted.edit, ops.name(id)),
                  fmt::format("it is a {}", name(ops[id].kind)));
    throw Error(fmt::format("{}: it would make a cycle: {} lies between them", wanted.edit, ops.name(id)),
                fmt::format("{} is no op of a generated kernel", ops.name(id)));
  }
}

bool meet(const std::vector<NodeId>& a, const std::vector<NodeId>& b) {
  return std::any_of(a.begin(), a.end(), [&](NodeId id) { return contains_sorted(b, id); });
}

}  // namespace

Required required_sets(const Ops& ops, const Constraints& constraints) {
  Required sets;
  for (const Wanted& wanted : wanted_sets(ops, constraints)) {
    if (wanted.ops.size() < 2) continue;
    std::vector<NodeId> set = wanted.ops;
    for (bool grown = true; grown;) {
      set = with_paths(ops, std::move(set));
      grown = false;
      for (auto other = sets.begin(); other != sets.end(); ++other) {
        if (!meet(set, *other)) continue;
        for (const NodeId id : *other) insert_sorted(set, id);
        sets.erase(other);
        grown = true;
        break;
      }
    }
    require_fusible(ops, set, wanted);
    for (const auto& [c, d] : constraints.apart)
      if (contains_sorted(set, c) && contains_sorted(set, d))
        throw Error(
            fmt::format("{}: another override keeps {} and {}, which must be in the kernel too, apart",
                        wanted.edit, ops.name(c), ops.name(d)),
            "keep one of them");
    sets.push_back(std::move(set));
  }
  return sets;
}

void extend_to(const Required& required, const Ops& ops, const Constraints& constraints,
               std::vector<Pattern>& patterns) {
  if (required.empty()) return;
  for (Pattern& pattern : patterns) {
    const std::vector<NodeId> before = pattern.ops;
    for (const std::vector<NodeId>& set : required)
      if (meet(pattern.ops, set))
        for (const NodeId id : set) insert_sorted(pattern.ops, id);
    if (pattern.ops == before) continue;
    Contraction graph(ops);
    // What was added may meet another set in turn.
    const bool whole = std::all_of(required.begin(), required.end(), [&](const std::vector<NodeId>& set) {
      return !meet(pattern.ops, set) ||
             std::includes(pattern.ops.begin(), pattern.ops.end(), set.begin(), set.end());
    });
    if (!whole || graph.makes_cycle(pattern.ops) || holds_apart(constraints, pattern.ops))
      pattern.ops.clear();
  }
  std::erase_if(patterns, [](const Pattern& pattern) { return pattern.ops.empty(); });
  for (const std::vector<NodeId>& set : required) patterns.push_back({set, PatternSource::kOverride});
  remove_doubles(patterns);
}

}  // namespace stitchwork::fusionstitching
