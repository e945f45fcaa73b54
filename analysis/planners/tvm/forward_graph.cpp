#include "analysis/planners/tvm/forward_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/facts.h"

namespace stitchwork::tvm {
namespace {

class Builder {
 public:
  explicit Builder(const Computation& computation)
      : computation_(computation), index_(static_cast<std::size_t>(computation.size()), -1) {
    graph_.computation = &computation;
  }

  ForwardGraph run() {
    visit(computation_.root);
    if (const int root = index(computation_.root); root >= 0) at(root).external = true;
    return std::move(graph_);
  }

 private:
  int index(NodeId op) const { return index_[static_cast<std::size_t>(op)]; }
  ForwardNode& at(int i) { return graph_.nodes[static_cast<std::size_t>(i)]; }

  void visit(NodeId root) {
    struct Frame {
      NodeId op;
      std::size_t next;
    };
    std::vector<char> seen(index_.size(), 0);
    std::vector<Frame> path;
    const auto enter = [&](NodeId op) {
      if (is_immediate(computation_, op) || seen[static_cast<std::size_t>(op)]) return;
      seen[static_cast<std::size_t>(op)] = 1;
      path.push_back({op, 0});
    };
    enter(root);
    while (!path.empty()) {
      Frame& top = path.back();
      const Node& node = computation_.node(top.op);
      if (top.next < node.operands.size()) {
        enter(node.operands[top.next++]);
        continue;
      }
      path.pop_back();
      add(node);
    }
  }

  int append(NodeId op, Kind kind) {
    graph_.nodes.push_back({op, kind, false, {}});
    return graph_.size() - 1;
  }

  void add(const Node& node) {
    if (node.op == Op::kConcatenate) {
      const int tuple = append(node.id, Kind::kTuple);
      read_operands(node, tuple);
      const int own = append(node.id, kind_of(node));
      at(tuple).readers.push_back({own, kind_of(node)});
      index_[static_cast<std::size_t>(node.id)] = own;
      return;
    }
    const int own = append(node.id, kind_of(node));
    index_[static_cast<std::size_t>(node.id)] = own;
    at(own).external = node.op == Op::kParameter;
    read_operands(node, own);
  }

  void read_operands(const Node& node, int reader) {
    for (NodeId id : node.operands) {
      const int operand = index(id);
      if (operand < 0) continue;
      const Node& read = computation_.node(id);
      const bool nested = read.shape.is_tuple && at(reader).kind == Kind::kTuple;
      if (nested || (node.op == Op::kGetTupleElement && holds_tuples(read.shape)))
        at(operand).external = true;
      else
        at(operand).readers.push_back(
            {reader, at(reader).kind == Kind::kTuple ? Kind::kInjective : edge_kind(node, read.shape)});
    }
  }

  static bool holds_tuples(const Shape& shape) {
    return std::any_of(shape.elements.begin(), shape.elements.end(),
                       [](const Shape& element) { return element.is_tuple; });
  }

  const Computation& computation_;
  std::vector<int> index_;  ///< of what reads an op's value, by op
  ForwardGraph graph_;
};

/// Climbs from both to their lowest common ancestor, collecting the kinds passed; -1 if there is none.
int common_ancestor(const std::vector<PostDominator>& tree, int a, int b, Kind& kind) {
  const auto climb = [&](int& n) {
    const PostDominator& up = tree[static_cast<std::size_t>(n)];
    kind = std::max(kind, up.kind);
    n = up.node;
  };
  const auto depth = [&](int n) { return tree[static_cast<std::size_t>(n)].depth; };
  while (a != b) {
    if (a < 0 || b < 0) return -1;
    const int depth_a = depth(a), depth_b = depth(b);
    if (depth_a >= depth_b) climb(a);
    if (depth_b >= depth_a) climb(b);
  }
  return a;
}

}  // namespace

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::kElemwise:
      return "element-wise";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kInjective:
      return "injective";
    case Kind::kCommReduce:
      return "reduction";
    case Kind::kOutEwiseFusable:
      return "out-element-wise-fusable";
    case Kind::kTuple:
      return "tuple";
    case Kind::kOpaque:
      break;
  }
  return "opaque";
}

Kind kind_of(const Node& node) {
  if (node.op == Op::kDot || node.op == Op::kConvolution || node.op == Op::kReduceWindow)
    return Kind::kOutEwiseFusable;
  if (node.op == Op::kTuple) return Kind::kTuple;
  if (node.op == Op::kGetTupleElement) return Kind::kInjective;
  const PlanRole role = plan_role(node);
  if (node.shape.is_tuple || (role != PlanRole::kMemory && role != PlanRole::kAlias)) return Kind::kOpaque;
  if (is_elementwise(node.op)) return node.operands.size() == 1 ? Kind::kElemwise : Kind::kBroadcast;
  switch (def(node.op).cls) {
    case OpClass::kBroadcast:
      return Kind::kBroadcast;
    case OpClass::kLayout:
    case OpClass::kGather:
      return Kind::kInjective;
    case OpClass::kReduce:
      return Kind::kCommReduce;
    default:
      return node.op == Op::kIota ? Kind::kInjective : Kind::kOpaque;
  }
}

Kind edge_kind(const Node& reader, const Shape& operand) {
  const Kind kind = kind_of(reader);
  return kind == Kind::kBroadcast && operand.dims == reader.shape.dims ? Kind::kElemwise : kind;
}

ForwardGraph forward_graph(const Computation& computation) { return Builder(computation).run(); }

std::vector<PostDominator> post_dominators(const ForwardGraph& graph) {
  std::vector<PostDominator> tree(static_cast<std::size_t>(graph.size()));
  for (int i = graph.size() - 1; i >= 0; --i) {
    PostDominator& own = tree[static_cast<std::size_t>(i)];
    const ForwardNode& node = graph[i];
    if (node.external || node.readers.empty()) {
      own.kind = Kind::kOpaque;
      continue;
    }
    int meeting = node.readers[0].reader;
    own.kind = node.readers[0].kind;
    for (std::size_t r = 1; r < node.readers.size(); ++r) {
      meeting = common_ancestor(tree, meeting, node.readers[r].reader, own.kind);
      own.kind = std::max(own.kind, node.readers[r].kind);
    }
    own.node = meeting;
    own.depth = meeting < 0 ? 1 : tree[static_cast<std::size_t>(meeting)].depth + 1;
  }
  return tree;
}

std::string to_text(const ForwardGraph& graph, const std::vector<PostDominator>& dominators) {
  std::string text;
  for (int i = 0; i < graph.size(); ++i) {
    const PostDominator& d = dominators[static_cast<std::size_t>(i)];
    text += fmt::format("{}: {}", graph.name(i), name(graph[i].kind));
    if (d.node >= 0) text += fmt::format(", meets in {} by {}", graph.name(d.node), name(d.kind));
    text += "\n";
  }
  return text;
}

}  // namespace stitchwork::tvm
