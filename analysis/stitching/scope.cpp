#include "analysis/stitching/scope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "analysis/plan/assemble.h"
#include "analysis/stitching/equal_ops.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/sorted.h"

namespace stitchwork::astitch {
namespace {

/// Levels of ops that follow each other; the gap lets contraction put clusters in between.
/// So that a million clusters may come between two ops.
constexpr std::int64_t kLevelGap = std::int64_t{1} << 20;

/// Clusters of ops under contraction, with levels that grow along every edge between clusters: no path leads
/// from a cluster to one whose level is not above its own.
class Contraction {
 public:
  explicit Contraction(const Nodes& nodes)
      : parent_(nodes.facts.size(), kNoNode),
        level_(nodes.facts.size()),
        in_(nodes.facts.size()),
        out_(nodes.facts.size()),
        size_(nodes.facts.size()),
        mark_(nodes.facts.size(), 0) {
    for (NodeId id = 0; id < static_cast<NodeId>(nodes.facts.size()); ++id) {
      level_[index(id)] = id * kLevelGap;
      parent_[index(id)] = id;
      size_[index(id)].add(nodes[id].code);
      if (!is_step(nodes[id])) continue;
      in_[index(id)] = producers(nodes, id);
      for (const NodeId producer : in_[index(id)]) out_[index(producer)].push_back(id);
    }
  }

  NodeId find(NodeId id) {
    while (parent_[index(id)] != id) id = parent_[index(id)] = parent_[index(parent_[index(id)])];
    return id;
  }
  /// Ops of both clusters together, equal ones once.
  int size(NodeId u, NodeId v) const { return size_[index(u)].with(size_[index(v)]); }
  /// Whether `a` comes before `b`: then no path leads from b to a.
  bool before(NodeId a, NodeId b) const {
    return std::pair(level_[index(a)], a) < std::pair(level_[index(b)], b);
  }

  /// The clusters on paths from u to v, in order, u and v included.
  std::vector<NodeId> between(NodeId u, NodeId v) const {
    std::set<NodeId> below{u}, found{v};
    std::vector<NodeId> stack{u};
    while (!stack.empty()) {
      const NodeId cluster = stack.back();
      stack.pop_back();
      for (const NodeId next : out_[index(cluster)])
        if (before(next, v) && below.insert(next).second) stack.push_back(next);
    }
    stack = {v};
    while (!stack.empty()) {
      const NodeId cluster = stack.back();
      stack.pop_back();
      for (const NodeId previous : in_[index(cluster)])
        if (below.contains(previous) && found.insert(previous).second) stack.push_back(previous);
    }
    found.insert(u);
    std::vector<NodeId> result(found.begin(), found.end());
    std::sort(result.begin(), result.end(), [&](NodeId a, NodeId b) { return before(a, b); });
    return result;
  }

  /// The last cluster before v on some other path u -> ... -> v, or kNoNode.
  NodeId detour(NodeId u, NodeId v) {
    const int mark = ++epoch_;
    std::vector<NodeId> stack;
    const auto visit = [&](NodeId next) {
      if (level_[index(next)] >= level_[index(v)] || mark_[index(next)] == mark) return;
      mark_[index(next)] = mark;
      stack.push_back(next);
    };
    for (const NodeId next : out_[index(u)]) visit(next);
    while (!stack.empty()) {
      const NodeId cluster = stack.back();
      stack.pop_back();
      if (contains_sorted(out_[index(cluster)], v)) return cluster;
      for (const NodeId next : out_[index(cluster)]) visit(next);
    }
    return kNoNode;
  }

  /// Some cluster on another path u -> ... -> v, or kNoNode. Searched from both ends at once: what is below u
  /// or what is above v may be most of the graph, rarely both are. The end that came to nothing first is
  /// where contract(u, v) has less to move.
  NodeId other_path(NodeId u, NodeId v) {
    const int below = ++epoch_, above = ++epoch_;
    std::vector<NodeId> down{u}, up{v};
    // One edge at a time from either end.
    for (std::size_t d = 0, u_at = 0, v_at = 0, p = 0;;) {
      for (; d < down.size() && u_at == out_[index(down[d])].size(); u_at = 0) ++d;
      if (d == down.size()) {
        less_below_ = true;
        return kNoNode;
      }
      const NodeId from = down[d], next = out_[index(from)][u_at++];
      if (next == v && from != u) return from;
      if (level_[index(next)] < level_[index(v)]) {
        if (mark_[index(next)] == above) return next;
        if (mark_[index(next)] != below) {
          mark_[index(next)] = below;
          down.push_back(next);
        }
      }
      for (; p < up.size() && v_at == in_[index(up[p])].size(); v_at = 0) ++p;
      if (p == up.size()) {
        less_below_ = false;
        return kNoNode;
      }
      const NodeId to = up[p], previous = in_[index(to)][v_at++];
      if (previous == u && to != v) return to;
      if (level_[index(previous)] > level_[index(u)]) {
        if (mark_[index(previous)] == below) return previous;
        if (mark_[index(previous)] != above) {
          mark_[index(previous)] = above;
          up.push_back(previous);
        }
      }
    }
  }

  /// Merges v into u. Only where no other path leads from u to v.
  void contract(NodeId u, NodeId v) {
    const auto rename = [&](std::vector<NodeId>& list) {
      erase_sorted(list, v);
      insert_sorted(list, u);
    };
    erase_sorted(out_[index(u)], v);
    erase_sorted(in_[index(v)], u);
    for (const NodeId next : out_[index(v)]) {
      rename(in_[index(next)]);
      insert_sorted(out_[index(u)], next);
    }
    for (const NodeId previous : in_[index(v)]) {
      rename(out_[index(previous)]);
      insert_sorted(in_[index(u)], previous);
    }
    in_[index(v)] = {};
    out_[index(v)] = {};
    parent_[index(v)] = u;
    size_[index(u)].add(size_[index(v)]);
    size_[index(v)] = {};
    if (less_below_) {
      level_[index(u)] = level_[index(v)];
      settle(u, out_, [](std::int64_t from, std::int64_t to) { return to > from ? to : from + 1; });
    } else {
      settle(u, in_, [](std::int64_t from, std::int64_t to) { return to < from ? to : from - 1; });
    }
  }

 private:
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

  /// Moves the levels of what lies along `edges` out of the way.
  template <typename Settled>
  void settle(NodeId start, const std::vector<std::vector<NodeId>>& edges, const Settled& settled) {
    std::vector<NodeId> stack{start};
    while (!stack.empty()) {
      const NodeId cluster = stack.back();
      stack.pop_back();
      for (const NodeId next : edges[index(cluster)]) {
        const std::int64_t level = settled(level_[index(cluster)], level_[index(next)]);
        if (level == level_[index(next)]) continue;
        level_[index(next)] = level;
        stack.push_back(next);
      }
    }
  }

  std::vector<NodeId> parent_;
  std::vector<std::int64_t> level_;
  std::vector<std::vector<NodeId>> in_, out_;  ///< ascending
  std::vector<CodeSize> size_;
  std::vector<int> mark_;
  int epoch_ = 0;
  bool less_below_ = true;
};

struct PendingEdge {
  NodeId producer, consumer;
  NodeId through = kNoNode;  ///< an op on another path between them, once one was found
};

bool stitchable(const Nodes& nodes, NodeId id) { return nodes[id].member && !nodes[id].isolated; }

/// Override merge: the clusters of both ops become one, with all that lies on paths between them (without it,
/// the merged kernel would wait for itself).
void merge_as_wanted(const Nodes& nodes, const Constraints& constraints, Contraction& contraction,
                     Recorder& recorder) {
  const auto inside = [&](NodeId cluster) {
    return [&contraction, cluster](NodeId op) { return contraction.find(op) == cluster; };
  };
  for (const auto& [a, b] : constraints.together) {
    const std::string merge = fmt::format("override 'merge {} and {}'", nodes.name(a), nodes.name(b));
    for (const NodeId id : {a, b}) {
      if (!nodes[id].member)
        throw Error(fmt::format("{}: {} is only an index map", merge, nodes.name(id)),
                    "every kernel that reads it repeats it; name the op that computes");
      if (nodes[id].isolated)
        throw Error(fmt::format("{}: {} needs a kernel of its own", merge, nodes.name(id)),
                    "its operands are not read by index maps");
    }
    NodeId u = contraction.find(a), v = contraction.find(b);
    if (u == v) continue;
    if (contraction.before(v, u)) std::swap(u, v);
    const std::vector<NodeId> path = contraction.between(u, v);
    for (const NodeId cluster : path) {
      if (stitchable(nodes, cluster)) continue;
      std::vector<NodeId> way = contraction.between(u, cluster);
      const std::vector<NodeId> rest = contraction.between(cluster, v);
      way.insert(way.end(), rest.begin() + 1, rest.end());
      std::vector<std::string> names;
      for (const NodeId id : way) names.push_back(nodes.name(id));
      throw Error(fmt::format("{}: it would make a cycle: {} lies between them on the path {}", merge,
                              nodes.name(cluster), fmt::join(names, " -> ")),
                  fmt::format("{} is no op of a generated kernel", nodes.name(cluster)));
    }
    for (const NodeId next : path) {
      if (next == u) continue;
      if (const auto pair = constraints.keeps_apart(inside(u), inside(next)))
        throw Error(
            fmt::format("{}: another override keeps {} and {}, which must be in the kernel too, apart", merge,
                        nodes.name(pair->first), nodes.name(pair->second)),
            "keep one of them");
      contraction.contract(u, next);
    }
    recorder.add("scope", nodes.name(a), nodes.name(b), [&] {
      return Verdict::yes("override.merge",
                          fmt::format("with the {} clusters between them", path.size() - 2));
    });
  }
}

}  // namespace

StitchOp stitch_op(const Nodes& nodes, std::vector<NodeId> members) {
  StitchOp result;
  const std::set<NodeId> inside(members.begin(), members.end());
  const auto read_outside = [&](NodeId member) {
    if (nodes[member].buffer_needed) return true;
    std::vector<NodeId> stack(nodes[member].users);
    std::set<NodeId> seen;
    while (!stack.empty()) {
      const NodeId user = stack.back();
      stack.pop_back();
      if (!seen.insert(user).second) continue;
      if (nodes[user].member && !inside.contains(user)) return true;
      if (nodes[user].transparent) {  // also of one inside: other stitch ops repeat it
        stack.insert(stack.end(), nodes[user].users.begin(), nodes[user].users.end());
      }
    }
    return false;
  };
  for (const NodeId member : members) {
    if (read_outside(member)) result.outputs.push_back(member);
  }
  result.members = std::move(members);
  return result;
}

std::vector<NodeId> members_of(const Nodes& nodes, const KernelPlan& kernel) {
  const std::vector<NodeId> stored = materialised(kernel);
  std::vector<NodeId> members;
  for (const NodeId id : kernel.ops) {
    if (!nodes[id].member) continue;
    if (!nodes[id].transparent || std::binary_search(stored.begin(), stored.end(), id)) members.push_back(id);
  }
  return members;
}

std::vector<StitchOp> connected_parts(const Nodes& nodes, const std::vector<NodeId>& members) {
  std::map<NodeId, NodeId> parent;
  for (const NodeId member : members) parent[member] = member;
  const auto find = [&](NodeId id) {
    while (parent[id] != id) id = parent[id] = parent[parent[id]];
    return id;
  };
  for (const NodeId member : members) {
    for (const NodeId producer : producers(nodes, member)) {
      if (parent.contains(producer)) parent[find(member)] = find(producer);
    }
  }
  std::map<NodeId, std::vector<NodeId>> parts;  // by root, then re-ordered by first member
  for (const NodeId member : members) parts[find(member)].push_back(member);
  std::vector<std::vector<NodeId>> ordered;
  for (auto& [root, part] : parts) ordered.push_back(std::move(part));
  std::sort(ordered.begin(), ordered.end());
  std::vector<StitchOp> result;
  for (auto& part : ordered) result.push_back(stitch_op(nodes, std::move(part)));
  return result;
}

Scope find_scope(const Nodes& nodes, int max_ops, Recorder& recorder, const Constraints& constraints) {
  Contraction contraction(nodes);
  merge_as_wanted(nodes, constraints, contraction, recorder);
  const auto kept_apart = [&](NodeId u, NodeId v) {
    return constraints.keeps_apart([&](NodeId op) { return contraction.find(op) == u; },
                                   [&](NodeId op) { return contraction.find(op) == v; });
  };
  std::vector<PendingEdge> pending;
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.facts.size()); ++id) {
    if (!nodes[id].member) continue;
    for (const NodeId producer : producers(nodes, id)) {
      if (stitchable(nodes, id) && stitchable(nodes, producer)) {
        pending.push_back({.producer = producer, .consumer = id});
      } else if (nodes[producer].member) {
        recorder.add("scope", nodes.name(producer), nodes.name(id), [&] {
          return Verdict::no("astitch.isolated",
                             fmt::format("{} has a kernel of its own: it does not read by "
                                         "index maps",
                                         nodes.name(nodes[id].isolated ? id : producer)));
        });
      }
    }
  }
  // A refused edge may become possible once the other path has been swallowed: to a fixpoint.
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<PendingEdge> refused;
    for (PendingEdge edge : pending) {
      interruption_point();
      const NodeId u = contraction.find(edge.producer), v = contraction.find(edge.consumer);
      if (u == v) continue;
      const int ops = contraction.size(u, v);
      const auto path_remains = [&] {
        if (edge.through == kNoNode) return false;
        const NodeId w = contraction.find(edge.through);
        return w != u && w != v;
      };
      if (ops > max_ops || kept_apart(u, v) || path_remains() ||
          (edge.through = contraction.other_path(u, v)) != kNoNode) {
        refused.push_back(edge);
        continue;
      }
      contraction.contract(u, v);
      changed = true;
      recorder.add("scope", nodes.name(edge.producer), nodes.name(edge.consumer), [&] {
        return Verdict::yes("astitch.vertical-stitch", fmt::format("no other path; {} ops together", ops));
      });
    }
    pending = std::move(refused);
  }
  for (const PendingEdge& edge : pending) {
    recorder.add("scope", nodes.name(edge.producer), nodes.name(edge.consumer), [&] {
      const NodeId u = contraction.find(edge.producer), v = contraction.find(edge.consumer);
      const int ops = contraction.size(u, v);
      if (u == v) return Verdict::yes("astitch.vertical-stitch", "joined through another edge");
      if (ops > max_ops) {
        return Verdict::no("astitch.max-ops", fmt::format("{} ops together, {} allowed", ops, max_ops));
      }
      if (const auto pair = kept_apart(u, v))
        return Verdict::no("override.forbid_merge",
                           fmt::format("an override keeps {} and {} apart", nodes.name(pair->first),
                                       nodes.name(pair->second)));
      return Verdict::no("astitch.cycle",
                         fmt::format("another path leads through {}", nodes.name(contraction.detour(u, v))));
    });
  }

  std::map<NodeId, std::vector<NodeId>> clusters;
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.facts.size()); ++id) {
    if (nodes[id].member) clusters[contraction.find(id)].push_back(id);
  }
  std::vector<std::vector<NodeId>> ordered;
  for (auto& [root, members] : clusters) ordered.push_back(std::move(members));
  std::sort(ordered.begin(), ordered.end());
  Scope scope;
  for (auto& members : ordered) scope.stitch_ops.push_back(stitch_op(nodes, std::move(members)));
  return scope;
}

std::vector<std::pair<NodeId, NodeId>> edges_across(const Nodes& nodes, const std::vector<NodeId>& members,
                                                    const std::vector<NodeId>& part) {
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (const NodeId id : members) {
    if (std::binary_search(part.begin(), part.end(), id)) continue;
    for (const NodeId producer : producers(nodes, id))
      if (std::binary_search(part.begin(), part.end(), producer)) edges.emplace_back(producer, id);
  }
  return edges;
}

std::string to_text(const Nodes& nodes, const Scope& scope) {
  const auto names = [&](const std::vector<NodeId>& ids) {
    std::vector<std::string> result;
    for (const NodeId id : ids) result.push_back(nodes.name(id));
    return fmt::format("{}", fmt::join(result, ", "));
  };
  std::string text;
  for (const StitchOp& op : scope.stitch_ops) {
    text += fmt::format("stitch {} -> {}\n", names(op.members), names(op.outputs));
  }
  return text;
}

}  // namespace stitchwork::astitch
