#include "core/graph/graph.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/error.h"

namespace stitchwork {

NodeId Computation::find(std::string_view node_name) const {
  const auto found = std::ranges::find(nodes, node_name, &Node::name);
  return found == nodes.end() ? kNoNode : found->id;
}

std::vector<std::vector<NodeId>> Computation::users() const {
  std::vector<std::vector<NodeId>> result(nodes.size());
  for (const Node& node : nodes) {
    for (const NodeId operand : node.operands) {
      auto& users = result[static_cast<std::size_t>(operand)];
      if (users.empty() || users.back() != node.id) users.push_back(node.id);
    }
  }
  return result;
}

namespace {

/// Every value of `from` is one of `to`: a wider type of its kind.
bool widens(DType from, DType to) {
  if (from == to) return true;
  const bool floats = is_floating(from) && is_floating(to);
  const bool integers =
      is_integral(from) && is_integral(to) && is_signed_integer(from) == is_signed_integer(to);
  return (floats || integers) && bit_width(to) > bit_width(from);
}

/// What `id` is converted from, step by step to wider types (`up`) or to narrower ones.
NodeId behind_converts(const Computation& computation, NodeId id, bool up) {
  for (;;) {
    const Node& node = computation.node(id);
    if (node.op != Op::kConvert) return id;
    const DType to = node.shape.dtype, from = computation.node(node.operands[0]).shape.dtype;
    if (up ? !widens(from, to) : !widens(to, from)) return id;
    id = node.operands[0];
  }
}

}  // namespace

std::optional<Op> simple_reducer(const Graph& graph, ComputationId reducer) {
  const Computation& computation = graph.computation(reducer);
  const Node& combined = computation.node(behind_converts(computation, computation.root, false));
  switch (combined.op) {
    case Op::kAdd:
    case Op::kMultiply:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      break;
    default:
      return std::nullopt;
  }
  std::vector<NodeId> sources;
  for (const NodeId operand : combined.operands)
    sources.push_back(behind_converts(computation, operand, true));
  const auto& parameters = computation.parameters;
  if (parameters.size() != 2 || !std::ranges::is_permutation(sources, parameters)) return std::nullopt;
  return combined.op;
}

ComputationId applied(const Node& node) {
  SW_CHECK(!node.attrs.computations.empty(), "{} '{}' applies no computation", def(node.op).name, node.name);
  return node.attrs.computations[0];
}

void check_node(const Graph& graph, const Computation& computation, const Node& node) {
  std::vector<const Shape*> shapes;
  shapes.reserve(node.operands.size());
  for (const NodeId operand : node.operands) {
    if (operand < 0 || operand >= node.id) {
      throw Error(fmt::format("'{}' uses node {}, which does not come before it", node.name, operand));
    }
    shapes.push_back(&computation.node(operand).shape);
  }
  const Shape inferred = infer_shape(graph, node, shapes);
  if (!inferred.compatible(node.shape)) {
    throw Error(fmt::format("'{}' is written {}, but {} gives {}", node.name, to_text(node.shape),
                            def(node.op).name, to_text(inferred)),
                "correct the shape or the operands");
  }
}

namespace {

/// Names, ids, root and parameters; the shapes are check_node's.
void check_structure(const Computation& computation) {
  const auto wanted = [&](bool ok, const char* what) {
    if (!ok) throw Error(fmt::format("computation '{}': {}", computation.name, what));
  };
  wanted(computation.root >= 0 && computation.root < computation.size(), "its root is no node of it");
  std::unordered_set<std::string_view> names;
  std::size_t parameters = 0;
  for (std::size_t i = 0; i < computation.nodes.size(); ++i) {
    const Node& node = computation.nodes[i];
    wanted(node.id == static_cast<NodeId>(i), "a node's id is not its place");
    if (!names.insert(node.name).second) {
      throw Error(fmt::format("computation '{}' has two nodes '{}'", computation.name, node.name));
    }
    if (node.op == Op::kParameter) ++parameters;
  }
  wanted(parameters == computation.parameters.size(), "its list of parameters is not that of its nodes");
  for (std::size_t i = 0; i < parameters; ++i) {
    const NodeId id = computation.parameters[i];
    wanted(id >= 0 && id < computation.size() && computation.node(id).op == Op::kParameter &&
               computation.node(id).attrs.parameter_number == static_cast<std::int64_t>(i),
           "its parameters are not in the order of their numbers");
  }
}

}  // namespace

void validate(const Graph& graph) {
  const auto count = static_cast<ComputationId>(graph.computations.size());
  if (graph.entry < 0 || graph.entry >= count)
    throw Error(graph.source, 0, 0, "the entry is no computation of the module");
  std::unordered_set<std::string_view> names;
  for (ComputationId c = 0; c < count; ++c) {
    const Computation& computation = graph.computation(c);
    int line = 0;
    try {
      if (!names.insert(computation.name).second)
        throw Error(fmt::format("two computations '{}'", computation.name));
      check_structure(computation);
      for (const Node& node : computation.nodes) {
        line = node.line;
        for (const ComputationId callee : node.attrs.computations) {
          if (callee < 0 || callee >= c) {
            throw Error(fmt::format("'{}' calls a computation that does not come before its own", node.name));
          }
        }
        check_node(graph, computation, node);
      }
    } catch (const Error& error) {
      throw Error(graph.source, line, 0, error.message(), error.hint());
    }
  }
}

namespace {

bool equal(const Attributes& a, const Attributes& b) {
  const bool same_literal = a.literal == b.literal || (a.literal && b.literal && *a.literal == *b.literal);
  return same_literal && a.dimensions == b.dimensions && a.slice == b.slice && a.padding == b.padding &&
         a.slice_sizes == b.slice_sizes && a.comparison == b.comparison && a.dot == b.dot &&
         a.gather == b.gather && a.parameter_number == b.parameter_number && a.tuple_index == b.tuple_index &&
         a.computations == b.computations && a.other == b.other;
}

bool equal(const Metadata& a, const Metadata& b) {
  return a.op_type == b.op_type && a.op_name == b.op_name && a.other == b.other;
}

bool equal(const Node& a, const Node& b) {
  return a.id == b.id && a.op == b.op && a.name == b.name && a.shape == b.shape && a.operands == b.operands &&
         equal(a.attrs, b.attrs) && equal(a.metadata, b.metadata);
}

bool equal(const Computation& a, const Computation& b) {
  return a.name == b.name && a.attributes == b.attributes && a.root == b.root &&
         a.parameters == b.parameters &&
         std::ranges::equal(a.nodes, b.nodes, [](const Node& x, const Node& y) { return equal(x, y); });
}

}  // namespace

bool equal(const Graph& a, const Graph& b) {
  return a.name == b.name && a.entry == b.entry && a.attributes == b.attributes &&
         std::ranges::equal(a.computations, b.computations,
                            [](const Computation& x, const Computation& y) { return equal(x, y); });
}

NodeId ComputationBuilder::add(Node node) {
  if (node.name.empty()) node.name = def(node.op).name;
  if (!names_.insert(node.name).second) {
    // The suffix replaces a numeric one, as in HLO: add.1 becomes add.2, not add.1.1.
    std::string base = node.name;
    if (const std::size_t dot = base.rfind('.');
        dot != std::string::npos && dot > 0 &&
        base.find_first_not_of("0123456789", dot + 1) == std::string::npos) {
      base.resize(dot);
    }
    do node.name = fmt::format("{}.{}", base, ++suffixes_[base]);
    while (!names_.insert(node.name).second);
  }
  return append(std::move(node));
}

void ComputationBuilder::reserve(const std::string& name) { names_.insert(name); }

NodeId ComputationBuilder::add_reserved(Node node) {
  SW_CHECK(names_.contains(node.name), "the name '{}' is not reserved", node.name);
  return append(std::move(node));
}

NodeId ComputationBuilder::append(Node node) {
  node.id = computation_.size();
  for (const NodeId operand : node.operands) {
    SW_CHECK(operand >= 0 && operand < node.id, "'{}' uses node {} before it is added", node.name, operand);
  }
  if (node.op == Op::kParameter) {
    const std::int64_t number = node.attrs.parameter_number;
    SW_CHECK(number >= 0, "parameter '{}' has no number", node.name);
    auto& parameters = computation_.parameters;
    parameters.resize(std::max(parameters.size(), static_cast<std::size_t>(number) + 1), kNoNode);
    SW_CHECK(parameters[static_cast<std::size_t>(number)] == kNoNode, "two parameters {}", number);
    parameters[static_cast<std::size_t>(number)] = node.id;
  }
  computation_.nodes.push_back(std::move(node));
  return computation_.nodes.back().id;
}

Computation ComputationBuilder::finish(NodeId root) && {
  SW_CHECK(root >= 0 && root < computation_.size(), "root {}", root);
  SW_CHECK(std::ranges::find(computation_.parameters, kNoNode) == computation_.parameters.end(),
           "'{}' lacks a parameter number", computation_.name);
  computation_.root = root;
  return std::move(computation_);
}

}  // namespace stitchwork
