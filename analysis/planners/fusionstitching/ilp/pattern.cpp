#include "analysis/planners/fusionstitching/ilp/pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {

std::string_view name(PatternSource source) {
  switch (source) {
    case PatternSource::kSubstitution:
      return "substitution";
    case PatternSource::kExploratory:
      return "exploratory";
    case PatternSource::kSplitSum:
      return "split sum";
    case PatternSource::kRemainder:
      return "remainder";
    case PatternSource::kOverride:
      return "override";
  }
  return "";
}

std::vector<NodeId> outputs_of(const Ops& ops, const std::vector<NodeId>& pattern) {
  std::vector<NodeId> outputs;
  for (const NodeId id : pattern) {
    const auto& consumers = ops[id].consumers;
    const bool read = std::any_of(consumers.begin(), consumers.end(),
                                  [&](NodeId consumer) { return !contains_sorted(pattern, consumer); });
    if (read || ops[id].result) outputs.push_back(id);
  }
  return outputs;
}

bool holds_apart(const Constraints& constraints, const std::vector<NodeId>& pattern) {
  return std::any_of(constraints.apart.begin(), constraints.apart.end(), [&](const Constraints::Pair& pair) {
    return contains_sorted(pattern, pair.first) && contains_sorted(pattern, pair.second);
  });
}

std::vector<std::vector<NodeId>> components(const Ops& ops, const std::vector<NodeId>& pattern) {
  std::vector<std::size_t> parent(pattern.size());
  for (std::size_t i = 0; i < parent.size(); ++i) parent[i] = i;
  const auto find = [&](std::size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    for (const NodeId producer : ops[pattern[i]].producers) {
      const auto at = std::lower_bound(pattern.begin(), pattern.end(), producer);
      if (at == pattern.end() || *at != producer) continue;
      const std::size_t a = find(i), b = find(static_cast<std::size_t>(at - pattern.begin()));
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<std::size_t, std::vector<NodeId>> parts;
  for (std::size_t i = 0; i < pattern.size(); ++i) parts[find(i)].push_back(pattern[i]);
  std::vector<std::vector<NodeId>> result;
  for (auto& [first, part] : parts) result.push_back(std::move(part));
  return result;
}

void remove_doubles(std::vector<Pattern>& patterns) {
  std::set<std::vector<NodeId>> seen;
  std::erase_if(patterns, [&](const Pattern& pattern) { return !seen.insert(pattern.ops).second; });
}

std::string to_text(const Ops& ops, const std::vector<Pattern>& patterns) {
  std::string text;
  for (const Pattern& pattern : patterns) {
    std::vector<std::string> names;
    for (const NodeId id : pattern.ops) names.push_back(ops.name(id));
    text += fmt::format("{} {}\n", name(pattern.source), fmt::join(names, ", "));
  }
  return text;
}

}  // namespace stitchwork::fusionstitching
