#include "analysis/planners/fusionstitching/ilp/cycles.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/sorted.h"

namespace stitchwork::fusionstitching {
namespace {

/// The contracted graph: units 0.. are the chosen patterns, the others single steps.
struct Contracted {
  std::vector<int> unit_of;  ///< by node; -1: no step
  std::vector<NodeId> some_op;
  std::vector<std::vector<int>> next;

  std::vector<int>& next_of(int unit) { return next[static_cast<std::size_t>(unit)]; }
  const std::vector<int>& next_of(int unit) const { return next[static_cast<std::size_t>(unit)]; }
};

Contracted contract(const Ops& ops, const std::vector<Pattern>& patterns, const std::vector<int>& chosen) {
  Contracted graph{std::vector<int>(ops.size(), -1), {}, {}};
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    const Pattern& pattern = patterns[static_cast<std::size_t>(chosen[c])];
    graph.some_op.push_back(pattern.ops.front());
    for (const NodeId id : pattern.ops) {
      int& unit = graph.unit_of[static_cast<std::size_t>(id)];
      SW_CHECK(unit < 0, "{} is in two chosen patterns", ops.name(id));
      unit = static_cast<int>(c);
    }
  }
  for (NodeId id = 0; id < static_cast<NodeId>(ops.size()); ++id) {
    if (ops[id].kind == OpKind::kNone || graph.unit_of[static_cast<std::size_t>(id)] >= 0) continue;
    graph.unit_of[static_cast<std::size_t>(id)] = static_cast<int>(graph.some_op.size());
    graph.some_op.push_back(id);
  }
  graph.next.resize(graph.some_op.size());
  for (NodeId id = 0; id < static_cast<NodeId>(ops.size()); ++id) {
    const int reader = graph.unit_of[static_cast<std::size_t>(id)];
    for (const NodeId producer : ops[id].producers) {
      const int maker = graph.unit_of[static_cast<std::size_t>(producer)];
      if (maker != reader) graph.next_of(maker).push_back(reader);
    }
  }
  for (std::vector<int>& next : graph.next) sort_unique(next);
  return graph;
}

/// Units that remain when all without predecessors, then all without successors, have been taken away again
/// and again: every cycle is among them.
std::vector<bool> entangled(const Contracted& graph) {
  std::vector<bool> left(graph.next.size(), true);
  std::vector<std::vector<int>> previous(graph.next.size());
  std::vector<std::size_t> in(graph.next.size(), 0), out(graph.next.size(), 0);
  for (std::size_t u = 0; u < graph.next.size(); ++u) {
    out[u] = graph.next[u].size();
    for (const int v : graph.next[u]) {
      previous[static_cast<std::size_t>(v)].push_back(static_cast<int>(u));
      ++in[static_cast<std::size_t>(v)];
    }
  }
  const auto strip = [&](std::vector<std::size_t>& count, const std::vector<std::vector<int>>& along) {
    std::vector<std::size_t> open;
    for (std::size_t u = 0; u < left.size(); ++u)
      if (left[u] && count[u] == 0) open.push_back(u);
    while (!open.empty()) {
      const std::size_t u = open.back();
      open.pop_back();
      left[u] = false;
      for (const int v : along[u])
        if (left[static_cast<std::size_t>(v)] && --count[static_cast<std::size_t>(v)] == 0)
          open.push_back(static_cast<std::size_t>(v));
    }
  };
  strip(in, graph.next);
  for (std::size_t u = 0; u < left.size(); ++u)  // what the first pass took away is nobody's successor
    out[u] = static_cast<std::size_t>(std::count_if(graph.next[u].begin(), graph.next[u].end(), [&](int v) {
      return static_cast<bool>(left[static_cast<std::size_t>(v)]);
    }));
  strip(out, previous);
  return left;
}

/// A shortest way from `start` back to it through units of `left`; empty if there is none.
std::vector<int> way_back(const Contracted& graph, const std::vector<bool>& left, int start) {
  std::vector<int> from(graph.next.size(), -1), open{start};
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (const int next : graph.next_of(open[i])) {
      if (next == start) {
        std::vector<int> way;
        for (int unit = open[i]; unit != start; unit = from[static_cast<std::size_t>(unit)])
          way.push_back(unit);
        way.push_back(start);
        std::reverse(way.begin(), way.end());
        return way;
      }
      if (!left[static_cast<std::size_t>(next)] || from[static_cast<std::size_t>(next)] >= 0) continue;
      from[static_cast<std::size_t>(next)] = open[i];
      open.push_back(next);
    }
  }
  return {};
}

}  // namespace

std::vector<Cycle> find_cycles(const Ops& ops, const std::vector<Pattern>& patterns,
                               const std::vector<int>& chosen) {
  const Contracted graph = contract(ops, patterns, chosen);
  std::vector<bool> left = entangled(graph);
  std::vector<Cycle> cycles;
  // A cycle is never of single steps alone. Cycles that share a pattern are cut one after the other.
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    if (!left[c]) continue;
    const std::vector<int> way = way_back(graph, left, static_cast<int>(c));
    if (way.empty()) continue;
    Cycle cycle;
    for (const int unit : way) {
      cycle.path.push_back(graph.some_op[static_cast<std::size_t>(unit)]);
      if (unit >= static_cast<int>(chosen.size())) continue;
      cycle.patterns.push_back(chosen[static_cast<std::size_t>(unit)]);
      left[static_cast<std::size_t>(unit)] = false;
    }
    std::sort(cycle.patterns.begin(), cycle.patterns.end());
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

Contraction::Contraction(const Ops& ops) : ops_(ops), unit_of_(ops.size(), -1), mark_(ops.size(), 0) {}

bool Contraction::makes_cycle(const std::vector<NodeId>& pattern) {
  const int inside = ++epoch_, seen = ++epoch_;
  for (const NodeId id : pattern) mark_[static_cast<std::size_t>(id)] = inside;
  std::vector<NodeId> open;
  const auto leave = [&](NodeId from) {
    for (const NodeId consumer : ops_[from].consumers) {
      int& mark = mark_[static_cast<std::size_t>(consumer)];
      if (mark == seen || mark == inside) continue;
      const int unit = unit_of_[static_cast<std::size_t>(consumer)];
      if (unit < 0) {
        mark = seen;
        open.push_back(consumer);
        continue;
      }
      for (const NodeId id : units_[static_cast<std::size_t>(unit)]) {
        mark_[static_cast<std::size_t>(id)] = seen;
        open.push_back(id);
      }
    }
  };
  for (const NodeId id : pattern) leave(id);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    const auto& consumers = ops_[id].consumers;
    if (std::any_of(consumers.begin(), consumers.end(),
                    [&](NodeId consumer) { return mark_[static_cast<std::size_t>(consumer)] == inside; }))
      return true;
    leave(id);
  }
  return false;
}

void Contraction::contract(const std::vector<NodeId>& pattern) {
  for (const NodeId id : pattern) unit_of_[static_cast<std::size_t>(id)] = static_cast<int>(units_.size());
  units_.push_back(pattern);
}

std::string to_text(const Ops& ops, const Cycle& cycle) {
  std::string text;
  for (const NodeId id : cycle.path) text += ops.name(id) + " -> ";
  return text + ops.name(cycle.path.front());
}

}  // namespace stitchwork::fusionstitching
