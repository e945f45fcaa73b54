#include "analysis/planners/tvm/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/interrupt.h"

namespace stitchwork::tvm {
namespace {

/// TVM's GraphPartitioner: three.
constexpr int kPhases = 3;

/// What the nodes between one and where its paths meet must be.
struct PathRule {
  Kind inside;               ///< at most
  std::vector<Kind> beyond;  ///< kinds larger than `inside` allowed at the end
};
const PathRule kEpilogue{Kind::kBroadcast, {}};
const PathRule kElementwisePath{Kind::kInjective, {Kind::kCommReduce, Kind::kOutEwiseFusable}};
const PathRule kInjectivePath{Kind::kInjective, {}};

class Partitioner {
 public:
  Partitioner(const ForwardGraph& graph, const std::vector<PostDominator>& dominators, Recorder& recorder)
      : graph_(graph), dominators_(dominators), recorder_(recorder) {
    for (int i = 0; i < graph.size(); ++i) groups_.push_back({i, 1, graph[i].kind});
    visited_.assign(groups_.size(), 0);
  }

  std::vector<FusedGroup> run() {
    for (int phase = 0; phase < kPhases; ++phase)
      for (int node = 0; node < graph_.size(); ++node) {
        interruption_point();
        consider(node, phase);
      }
    std::map<int, FusedGroup> found;
    for (int node = 0; node < graph_.size(); ++node) {
      FusedGroup& group = found[root(node)];
      group.root = root(node);
      group.nodes.push_back(node);
    }
    std::vector<FusedGroup> result;
    for (auto& [first, group] : found) result.push_back(std::move(group));
    return result;
  }

 private:
  /// Union-find. `nodes` and `kind` of a group that was merged into another stay as they were, as TVM's do.
  struct Member {
    int parent;
    int nodes;
    Kind kind;
  };

  Member& member(int node) { return groups_[static_cast<std::size_t>(node)]; }

  int root(int node) {
    int top = node;
    while (member(top).parent != top) top = member(top).parent;
    while (member(node).parent != top) node = std::exchange(member(node).parent, top);
    return top;
  }

  void consider(int node, int phase) {
    const PostDominator& way = dominators_[static_cast<std::size_t>(node)];
    const Kind kind = member(node).kind;
    if (kind == Kind::kOpaque) {
      if (!graph_[node].external)
        refuse(node, -1, "tvm.opaque", [] { return "TVM fuses nothing with an op of this kind"; });
      return;
    }
    if (way.node < 0) {
      if (!graph_[node].readers.empty())
        refuse(node, -1, "tvm.no-post-dominator", [] { return "what reads it never meets again"; });
      return;
    }
    const int nodes = member(root(way.node)).nodes + nodes_before(node, way.node);
    if (nodes > kMaxNodes) {
      refuse(node, way.node, "tvm.too-many-ops", [&] {
        return fmt::format("the function would have {} ops or more, {} allowed", nodes, kMaxNodes);
      });
      return;
    }
    if (phase == kPhases - 1) {
      consider_tuple_field(node, way.node);
      return;
    }
    if (root(node) == root(way.node)) return;
    if (member(way.node).kind == Kind::kTuple) {
      refuse(node, way.node, "tvm.meets-in-a-tuple",
             [] { return "its paths meet only in a tuple, into which nothing is fused yet"; });
      return;
    }
    switch (kind) {
      case Kind::kOutEwiseFusable:
        if (phase == 0) consider_epilogue(node, way);
        break;
      case Kind::kElemwise:
      case Kind::kBroadcast:
        consider_elementwise(node, way);
        break;
      case Kind::kInjective:
      case Kind::kTuple:
        if (phase == 1) fuse_along(node, way.node, kInjectivePath);
        break;
      case Kind::kCommReduce:
        refuse(node, way.node, "tvm.reduce-never-fuses-forward",
               [] { return "a reduction ends its kernel"; });
        break;
      case Kind::kOpaque:
        break;
    }
  }

  /// Once a tuple has gone into the injective op that reads it, its fields may follow.
  void consider_tuple_field(int node, int meeting) {
    if (member(node).kind > Kind::kInjective || member(meeting).kind != Kind::kTuple) return;
    if (root(node) == root(meeting)) return;
    const Kind target = member(root(meeting)).kind;
    if (target > Kind::kInjective) {
      refuse(node, meeting, "tvm.meets-in-a-tuple", [&] {
        return target == Kind::kTuple
                   ? std::string("the tuple its paths meet in is a result or goes to a call")
                   : fmt::format("the tuple its paths meet in went into a {} kernel", name(target));
      });
      return;
    }
    fuse_along(node, meeting, kInjectivePath);
  }

  void consider_epilogue(int node, const PostDominator& way) {
    if (way.kind != Kind::kElemwise) {
      refuse(node, way.node, "tvm.epilogue-not-element-wise", [&] {
        return fmt::format("only element-wise paths end the kernel of a call; this one is {}",
                           name(way.kind));
      });
      return;
    }
    fuse_along(node, way.node, kEpilogue);
  }

  void consider_elementwise(int node, const PostDominator& way) {
    if (way.kind > Kind::kCommReduce) {
      refuse(node, way.node, "tvm.path-kind", [&] {
        return fmt::format("the way to {} is {}, at most a reduction allowed", graph_.name(way.node),
                           name(way.kind));
      });
      return;
    }
    fuse_along(node, way.node, kElementwisePath);
  }

  void fuse_along(int node, int meeting, const PathRule& rule) {
    const int obstacle = obstacle_before(node, meeting, rule);
    if (obstacle >= 0) {
      refuse(node, meeting, obstacle == meeting ? "tvm.sink-kind" : "tvm.path-kind", [&] {
        const Kind kind = member(root(obstacle)).kind;
        return obstacle == meeting ? fmt::format("{}, where its paths meet, is in a kernel of kind {}",
                                                 graph_.name(meeting), name(kind))
                                   : fmt::format("on the way to {} lies {}, in a kernel of kind {}",
                                                 graph_.name(meeting), graph_.name(obstacle), name(kind));
      });
      return;
    }
    ++stamp_;
    const int target = root(meeting);
    int fused = 0;
    for_paths(node, meeting, [&](int at) {
      const int from = root(at);
      if (from == target) return true;
      Member& into = member(target);
      into.nodes += member(from).nodes;
      member(from).parent = target;
      // Only the anchor of a library kernel changes what its group is.
      if (member(from).kind == Kind::kOutEwiseFusable) into.kind = std::max(into.kind, member(from).kind);
      ++fused;
      return true;
    });
    recorder_.add("partition", graph_.name(node), graph_.name(meeting), [&] {
      return Verdict::yes("tvm.fused", fused > 1 ? fmt::format("with all between them: {} groups join", fused)
                                                 : std::string());
    });
  }

  /// The first node on a path from `node` to `meeting` whose kernel's kind the rule does not admit; -1: none.
  int obstacle_before(int node, int meeting, const PathRule& rule) {
    ++stamp_;
    int obstacle = -1;
    const auto admitted = [&](int at) {
      const Kind kind = member(root(at)).kind;
      if (kind <= rule.inside) return true;
      return at == meeting && std::find(rule.beyond.begin(), rule.beyond.end(), kind) != rule.beyond.end();
    };
    for_paths(node, meeting, [&](int at) {
      if (at != node && obstacle < 0 && !admitted(at)) obstacle = at;
      return obstacle < 0;
    });
    if (obstacle < 0 && !admitted(meeting)) obstacle = meeting;
    return obstacle;
  }

  /// Nodes of the groups on the paths from `node` to `meeting`, which is not counted; stops above the limit.
  int nodes_before(int node, int meeting) {
    ++stamp_;
    int nodes = 0;
    for_paths(node, meeting, [&](int at) {
      nodes += member(at).nodes;
      return nodes <= kMaxNodes;
    });
    return nodes;
  }

  /// Visits `node` and every node on a path from it to `meeting`, which is left out, in depth-first order
  /// until `visit` says false. The caller takes a new stamp.
  template <typename Visit>
  void for_paths(int node, int meeting, Visit visit) {
    std::vector<int> open{node};
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      if (at == meeting || std::exchange(visited_[static_cast<std::size_t>(at)], stamp_) == stamp_) continue;
      if (!visit(at)) return;
      const auto& readers = graph_[at].readers;
      for (auto edge = readers.rbegin(); edge != readers.rend(); ++edge) open.push_back(edge->reader);
    }
  }

  /// The same refusal in another phase is recorded once.
  template <typename Why>
  void refuse(int node, int meeting, std::string_view rule, Why why) {
    if (!recorder_.enabled() || !refused_.insert({node, std::string(rule)}).second) return;
    recorder_.add("partition", graph_.name(node), meeting < 0 ? std::string() : graph_.name(meeting),
                  [&] { return Verdict::no(std::string(rule), why()); });
  }

  const ForwardGraph& graph_;
  const std::vector<PostDominator>& dominators_;
  Recorder& recorder_;
  std::vector<Member> groups_;
  std::vector<int> visited_;
  int stamp_ = 0;
  std::set<std::pair<int, std::string>> refused_;
};

}  // namespace

std::vector<FusedGroup> partition(const ForwardGraph& graph, const std::vector<PostDominator>& dominators,
                                  Recorder& recorder) {
  return Partitioner(graph, dominators, recorder).run();
}

std::string to_text(const ForwardGraph& graph, const std::vector<FusedGroup>& groups) {
  std::string text;
  for (const FusedGroup& group : groups) {
    text += graph.name(group.root) + ":";
    for (int node : group.nodes) text += " " + graph.name(node);
    text += "\n";
  }
  return text;
}

}  // namespace stitchwork::tvm
