// What a parameter is for, judged by the ops its values reach: that decides how it is filled.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "core/evaluate/inputs.h"
#include "core/graph/float_semantics.h"
#include "core/graph/window.h"

namespace stitchwork {
namespace {

/// A computation in its calling context.
struct Scope {
  ComputationId computation = 0;
  NodeId caller = kNoNode;  ///< the call or fusion in `parent`
  const Scope* parent = nullptr;
};

/// What was found out about a parameter.
struct Facts {
  std::int64_t fan_in = 0;       ///< elements contracted by a product it feeds; 0: feeds none
  bool positive = false;         ///< reaches sqrt, log, a denominator, ...
  std::int64_t index_range = 0;  ///< smallest range of what it indexes; 0: indexes nothing
};

std::int64_t extent_product(const Shape& shape, const std::vector<std::int64_t>& dims) {
  std::int64_t product = 1;
  for (std::int64_t d : dims) product *= shape.dims[static_cast<std::size_t>(d)];
  return product;
}

/// Values pass unchanged, only elsewhere.
bool moves_values(Op op) {
  switch (op) {
    case Op::kReshape:
    case Op::kBitcast:
    case Op::kBroadcast:
    case Op::kTranspose:
    case Op::kSlice:
    case Op::kReverse:
    case Op::kConcatenate:
    case Op::kConcatInPlace:
    case Op::kCopy:
    case Op::kConvert:
    case Op::kOptimizationBarrier:
      return true;
    default:
      return false;
  }
}

class Follower {
 public:
  explicit Follower(const Graph& graph) : graph_(graph) {}

  Facts facts(NodeId parameter) {
    facts_ = {};
    seen_.clear();
    scopes_.clear();
    const Scope& entry = scopes_.emplace_back(Scope{graph_.entry, kNoNode, nullptr});
    follow(entry, parameter);
    while (!open_.empty()) {
      const Open next = open_.back();
      open_.pop_back();
      if (next.user == kNoNode)
        visit(*next.scope, next.value);
      else
        use(*next.scope, of(*next.scope).node(next.user), next.operand);
    }
    return facts_;
  }

 private:
  const Computation& of(const Scope& scope) const { return graph_.computation(scope.computation); }

  /// Chains are as long as the graph: what is still to be looked at stands on a stack, depth first.
  void follow(const Scope& scope, NodeId value) { open_.push_back({&scope, value, kNoNode, 0}); }

  void visit(const Scope& scope, NodeId value) {
    if (!seen_.insert({&scope, value}).second) return;
    const Computation& computation = of(scope);
    auto [users, is_new] = users_.try_emplace(scope.computation);
    if (is_new) users->second = computation.users();
    const std::vector<NodeId>& of_value = users->second[static_cast<std::size_t>(value)];
    for (auto user = of_value.rbegin(); user != of_value.rend(); ++user) {
      const std::vector<NodeId>& operands = computation.node(*user).operands;
      for (std::size_t i = operands.size(); i-- > 0;)
        if (operands[i] == value) open_.push_back({&scope, value, *user, i});
    }
    if (value == computation.root && scope.parent != nullptr) follow(*scope.parent, scope.caller);
  }

  /// `node` uses the parameter's value as operand i: note what that says, and go on if the value passes
  /// through.
  void use(const Scope& scope, const Node& node, std::size_t i) {
    const Computation& computation = of(scope);
    const Shape& operand = computation.node(node.operands[i]).shape;
    switch (node.op) {
      case Op::kCall:
      case Op::kFusion: {
        const Scope& inner = scopes_.emplace_back(Scope{applied(node), node.id, &scope});
        follow(inner, of(inner).parameters.at(i));
        return;
      }
      case Op::kDot: {
        const DotDims dims = node.attrs.dot.value_or(DotDims{});
        fan_in(extent_product(operand, i == 0 ? dims.lhs_contracting : dims.rhs_contracting));
        return;
      }
      case Op::kConvolution: {
        const Shape& kernel = computation.node(node.operands[1]).shape;
        const ConvolutionDims dims = parse_dim_labels(other_attribute(node, "dim_labels"));
        const std::int64_t outputs = kernel.dims[static_cast<std::size_t>(dims.kernel_output_feature)];
        if (outputs > 0) fan_in(kernel.elements_count() / outputs);
        return;
      }
      case Op::kSqrt:
      case Op::kRsqrt:
      case Op::kLog:
        facts_.positive = true;
        return;
      case Op::kPower:
        // An integer power is of any base; a negative one divides by it.
        facts_.positive |= i == 0 && exponent(scope, node.operands[1]).value_or(-1) < 0;
        return;
      case Op::kDivide:
        facts_.positive |= i == 1;
        return;
      case Op::kGather:
        if (i == 1) gather(node, computation.node(node.operands[0]).shape);
        return;
      case Op::kDynamicSlice:
        if (i >= 1)
          start_index(computation.node(node.operands[0]).shape,
                      Shape::array(operand.dtype, node.attrs.slice_sizes), i - 1);
        return;
      case Op::kDynamicUpdateSlice:
        if (i >= 2)
          start_index(computation.node(node.operands[0]).shape, computation.node(node.operands[1]).shape,
                      i - 2);
        return;
      case Op::kCompare:  // one-hot: compared with the positions of a dimension
        if (const auto extent = iota_extent(computation, node.operands[1 - i])) index_range(*extent);
        return;
      default:
        break;
    }
    if (moves_values(node.op) || passes_arithmetic(computation, node, i, operand)) follow(scope, node.id);
  }

  /// Integers stay indices through wrapping and clamping arithmetic; a float stays a variance when the usual
  /// epsilon is added.
  bool passes_arithmetic(const Computation& computation, const Node& node, std::size_t i,
                         const Shape& operand) const {
    if (node.op == Op::kSelect) return i > 0;
    if (is_integral(operand.dtype))
      return node.op == Op::kAdd || node.op == Op::kClamp || node.op == Op::kMaximum ||
             node.op == Op::kMinimum;
    return node.op == Op::kAdd && resolve(computation, node.operands[1 - i]).op == Op::kConstant;
  }

  /// The integer that a power's exponents are, also where a caller passes it.
  std::optional<double> exponent(const Scope& scope, NodeId id) const {
    const Node& source = source_of(of(scope), id);
    if (source.op != Op::kParameter || scope.parent == nullptr) return one_integer(source);
    const Node& caller = of(*scope.parent).node(scope.caller);
    return exponent(*scope.parent,
                    caller.operands.at(static_cast<std::size_t>(source.attrs.parameter_number)));
  }

  /// The op behind broadcasts, reshapes and the like.
  static const Node& resolve(const Computation& computation, NodeId id) {
    const Node* node = &computation.node(id);
    while (moves_values(node->op) && node->op != Op::kConcatenate)
      node = &computation.node(node->operands[0]);
    return *node;
  }

  static std::optional<std::int64_t> iota_extent(const Computation& computation, NodeId id) {
    const Node& source = resolve(computation, id);
    if (source.op == Op::kConstant) return counted_extent(source);
    if (source.op != Op::kIota) return std::nullopt;
    return source.shape.dims[static_cast<std::size_t>(source.attrs.dimensions[0])];
  }

  /// The n of a constant 0, 1, ..., n - 1: an iota that an exporter has folded.
  static std::optional<std::int64_t> counted_extent(const Node& constant) {
    const std::int64_t count = constant.shape.is_tuple ? 0 : constant.shape.elements_count();
    if (count < 2 || !is_integral(constant.shape.dtype) || constant.attrs.literal == nullptr)
      return std::nullopt;
    for (std::int64_t i = 0; i < count; ++i)
      if (constant.attrs.literal->get_int(i) != i) return std::nullopt;
    return count;
  }

  void gather(const Node& node, const Shape& table) {
    for (std::int64_t d : node.attrs.gather->start_index_map) {
      const auto dim = static_cast<std::size_t>(d);
      index_range(table.dims[dim] - node.attrs.gather->slice_sizes[dim] + 1);
    }
  }

  void start_index(const Shape& whole, const Shape& part, std::size_t dim) {
    if (dim < whole.dims.size()) index_range(whole.dims[dim] - part.dims[dim] + 1);
  }

  void fan_in(std::int64_t n) {
    if (facts_.fan_in == 0) facts_.fan_in = n;
  }
  void index_range(std::int64_t n) {
    if (n > 0) facts_.index_range = facts_.index_range == 0 ? n : std::min(facts_.index_range, n);
  }

  /// A value to follow, or its use as an operand of `user`.
  struct Open {
    const Scope* scope = nullptr;
    NodeId value = kNoNode, user = kNoNode;
    std::size_t operand = 0;
  };

  const Graph& graph_;
  std::vector<Open> open_;
  std::map<ComputationId, std::vector<std::vector<NodeId>>> users_;
  std::deque<Scope> scopes_;
  std::set<std::pair<const Scope*, NodeId>> seen_;
  Facts facts_;
};

Distribution chosen(const Shape& shape, const Facts& facts) {
  Distribution result;
  if (!shape.is_tuple && !is_floating(shape.dtype)) {
    result.kind = Distribution::Kind::kIndex;
    result.low = 0;
    result.high =
        is_integral(shape.dtype) && facts.index_range > 0 ? static_cast<double>(facts.index_range) : 2;
  } else if (facts.positive) {
    result.kind = Distribution::Kind::kUniform;
    result.low = 0.5;
    result.high = 1.5;
  } else if (shape.rank() >= 2) {
    const std::int64_t fan_in =
        facts.fan_in > 0 ? facts.fan_in : shape.dims[static_cast<std::size_t>(shape.rank() - 2)];
    result.stddev = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(fan_in, 1)));
  }
  return result;
}

}  // namespace

std::vector<Distribution> default_distributions(const Graph& graph) {
  const Computation& entry = graph.entry_computation();
  Follower follower(graph);
  std::vector<Distribution> result;
  for (NodeId parameter : entry.parameters)
    result.push_back(chosen(entry.node(parameter).shape, follower.facts(parameter)));
  return result;
}

}  // namespace stitchwork
