#include "core/evaluate/evaluator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/evaluate/lapack_call.h"
#include "core/evaluate/rounding.h"
#include "core/graph/window.h"

namespace stitchwork {
namespace {

Literal evaluate_node(const Graph& graph, const Computation& computation, const Node& node, Values operands,
                      Rounding* rounding);

/// Values of a computation's nodes: borrowed (parameters, constants) or owned until their last use.
class Evaluation {
 public:
  using Observer = std::function<void(const Node&, const Literal&)>;

  /// `rounding`, if given, moves the value of every node; where it says so, values that kernels compute again
  /// are computed twice, and each use takes one of the two.
  Evaluation(const Graph& graph, const Computation& computation, Values arguments, const Observer* observe,
             Rounding* rounding)
      : graph_(graph),
        computation_(computation),
        arguments_(arguments),
        observe_(observe),
        rounding_(rounding) {
    uses_.resize(computation.nodes.size());
    owned_.resize(computation.nodes.size());
    again_.resize(computation.nodes.size());
    borrowed_.resize(computation.nodes.size());
    for (const Node& node : computation.nodes)
      for (NodeId operand : node.operands) ++uses_[index(operand)];
    ++uses_[index(computation.root)];
    for (const int uses : uses_) shared_.push_back(uses > 1);
  }

  Literal run() {
    for (const Node& node : computation_.nodes) {
      const bool is_source = node.op == Op::kParameter || node.op == Op::kConstant;
      if (uses_[index(node.id)] == 0 && (observe_ == nullptr || is_source)) continue;
      evaluate(node);
      if (observe_ != nullptr) (*observe_)(node, value(node.id));
      for (NodeId operand : node.operands)
        if (--uses_[index(operand)] == 0) release(operand);
      if (uses_[index(node.id)] == 0) release(node.id);
    }
    std::optional<Literal>& root = owned_[index(computation_.root)];
    if (root) return std::move(*root);
    return value(computation_.root);
  }

 private:
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

  const Literal& value(NodeId id) const {
    const auto& owned = owned_[index(id)];
    SW_CHECK(owned || borrowed_[index(id)] != nullptr, "value of node {} is gone", id);
    return owned ? *owned : *borrowed_[index(id)];
  }

  void release(NodeId id) {
    owned_[index(id)].reset();
    again_[index(id)].reset();
  }

  /// Which of an operand's two values each use of it takes.
  std::vector<bool> choose(const Node& node) {
    std::vector<bool> second;
    for (NodeId operand : node.operands)
      second.push_back(again_[index(operand)] && shared_[index(operand)] && rounding_->either());
    return second;
  }

  /// `other`: from the values of its operands that `second` leaves.
  Literal evaluated(const Node& node, const std::vector<bool>& second, bool other, Rounding* rounding) {
    std::vector<const Literal*> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const auto& again = again_[index(node.operands[i])];
      operands.push_back(again && second[i] != other ? &*again : &value(node.operands[i]));
    }
    return evaluate_node(graph_, computation_, node, operands, rounding);
  }

  void evaluate(const Node& node) {
    if (node.op == Op::kParameter) {
      const auto number = static_cast<std::size_t>(node.attrs.parameter_number);
      SW_CHECK(number < arguments_.size(), "parameter {} of {}", number, arguments_.size());
      borrowed_[index(node.id)] = arguments_[number];
    } else if (node.op == Op::kConstant && node.attrs.literal != nullptr) {
      borrowed_[index(node.id)] = node.attrs.literal.get();
    } else if (only_renames(node) && uses_[index(node.operands[0])] == 1 && owned_[index(node.operands[0])]) {
      for (auto* values : {&owned_, &again_}) {
        std::optional<Literal> moved = std::exchange((*values)[index(node.operands[0])], std::nullopt);
        if (moved) moved->shape.dims = node.shape.dims;
        (*values)[index(node.id)] = std::move(moved);
      }
    } else {
      const std::vector<bool> second = choose(node);
      std::optional<Rounding> opposite;
      if (rounding_ != nullptr && rounding_->computes_again() && may_be_computed_again(node))
        opposite = rounding_->opposite();
      owned_[index(node.id)] = evaluated(node, second, false, rounding_);
      if (opposite) again_[index(node.id)] = evaluated(node, second, true, &*opposite);
    }
  }

  /// In every kernel and thread that needs it.
  static bool may_be_computed_again(const Node& node) {
    switch (def(node.op).cls) {
      case OpClass::kLightElementwise:
      case OpClass::kHeavyElementwise:
      case OpClass::kBroadcast:
      case OpClass::kLayout:
        return true;
      default:
        return false;
    }
  }

  static bool only_renames(const Node& node) { return node.op == Op::kReshape; }

  const Graph& graph_;
  const Computation& computation_;
  Values arguments_;
  const Observer* observe_;
  Rounding* rounding_;
  std::vector<int> uses_;     ///< still to come
  std::vector<bool> shared_;  ///< used more than once
  std::vector<std::optional<Literal>> owned_, again_;
  std::vector<const Literal*> borrowed_;
};

Literal evaluate_computation(const Graph& graph, ComputationId id, Values arguments, Rounding* rounding) {
  return Evaluation(graph, graph.computation(id), arguments, nullptr, rounding).run();
}

}  // namespace

Literal evaluate_computation(const Graph& graph, ComputationId id, Values arguments) {
  return evaluate_computation(graph, id, arguments, nullptr);
}

/// pred: true is the first branch; an index outside the branches takes the last (HLO).
std::size_t taken_branch(const Node& conditional, const Literal& selector) {
  const auto branches = static_cast<std::int64_t>(conditional.attrs.computations.size());
  std::int64_t branch = selector.get_int(0);
  if (selector.shape.dtype == DType::kPred) branch = branch != 0 ? 0 : 1;
  return static_cast<std::size_t>(branch < 0 || branch >= branches ? branches - 1 : branch);
}

namespace {

Literal tuple_of(const Node& node, Values operands) {
  Literal result;
  result.shape = Shape::tuple(node.shape.elements);
  for (const Literal* operand : operands) result.elements.push_back(*operand);
  return result;
}

Literal loop(const Graph& graph, const Node& node, const Literal& initial, Rounding* rounding) {
  const ComputationId condition = node.attrs.computations.at(0), body = node.attrs.computations.at(1);
  Literal state = initial;
  for (;;) {
    const Literal* argument = &state;
    if (evaluate_computation(graph, condition, {&argument, 1}, rounding).get_int(0) == 0) return state;
    state = evaluate_computation(graph, body, {&argument, 1}, rounding);
  }
}

Literal conditional(const Graph& graph, const Node& node, Values operands, Rounding* rounding) {
  const std::size_t taken = taken_branch(node, *operands[0]);
  return evaluate_computation(graph, node.attrs.computations[taken], operands.subspan(taken + 1, 1),
                              rounding);
}

Literal map(const Graph& graph, const Node& node, Values operands) {
  std::vector<Literal> results =
      apply_to_vectors(graph, applied(node), operands, node.shape.elements_count());
  results.at(0).shape = Shape::array(node.shape.dtype, node.shape.dims);
  return std::move(results[0]);
}

Literal dispatch(const Graph& graph, const Computation& computation, const Node& node, Values operands,
                 Rounding* rounding) {
  switch (node.op) {
    case Op::kConstant:
      if (node.attrs.literal == nullptr)
        throw Error("the values of this constant were left out of the file", kLeftOutHint);
      return *node.attrs.literal;
    case Op::kIota:
      return evaluate_iota(node);
    case Op::kCopy:
      return *operands[0];  // also of tuples
    case Op::kMap:
      return map(graph, node, operands);
    case Op::kBitcast:
      return evaluate_bitcast(node, computation.node(node.operands[0]).shape, *operands[0]);
    case Op::kBroadcast:
    case Op::kReshape:
    case Op::kTranspose:
    case Op::kSlice:
    case Op::kReverse:
    case Op::kConcatenate:
    case Op::kConcatInPlace:
    case Op::kPad:
      return evaluate_layout(node, operands);
    case Op::kGather:
      return evaluate_gather(node, operands);
    case Op::kDynamicSlice:
      return evaluate_dynamic_slice(node, operands);
    case Op::kDynamicUpdateSlice:
      return evaluate_dynamic_update_slice(node, operands);
    case Op::kScatter:
      return evaluate_scatter(graph, node, operands);
    case Op::kReduce:
      return evaluate_reduce(graph, node, operands);
    case Op::kReduceWindow:
      return evaluate_reduce_window(graph, node, operands);
    case Op::kSelectAndScatter:
      return evaluate_select_and_scatter(graph, node, operands);
    case Op::kDot:
      return evaluate_dot(node, operands);
    case Op::kConvolution:
      return evaluate_convolution(node, operands);
    case Op::kSort:
      return evaluate_sort(graph, node, operands);
    case Op::kTopK:
      return evaluate_top_k(node, operands);
    case Op::kCustomCall:
      if (is_lapack_call(node)) return evaluate_lapack_call(node, operands);
      break;
    case Op::kFft:
      return evaluate_fft(node, operands);
    case Op::kCholesky:
      return evaluate_cholesky(node, operands);
    case Op::kTriangularSolve:
      return evaluate_triangular_solve(node, operands);
    case Op::kRngBitGenerator:
      return evaluate_random_bits(node, operands);
    case Op::kTuple:
      return tuple_of(node, operands);
    case Op::kGetTupleElement:
      return operands[0]->elements.at(static_cast<std::size_t>(node.attrs.tuple_index));
    case Op::kCall:
    case Op::kFusion:
      return evaluate_computation(graph, applied(node), operands, rounding);
    case Op::kWhile:
      return loop(graph, node, *operands[0], rounding);
    case Op::kConditional:
      return conditional(graph, node, operands, rounding);
    case Op::kOptimizationBarrier:
    case Op::kAddDependency:
    case Op::kDomain:
    case Op::kUpdateInPlace:  // what it writes
      return *operands[0];
    case Op::kAfterAll:
      return Literal::zeros(node.shape);
    case Op::kGetDimensionSize: {
      if (node.attrs.dimensions.size() != 1) throw Error("get-dimension-size needs dimensions={D}");
      Literal size = Literal::zeros(node.shape);
      size.set_int(0, operands[0]->shape.dims.at(static_cast<std::size_t>(node.attrs.dimensions[0])));
      return size;
    }
    default:
      break;
  }
  if (is_elementwise(node.op)) return evaluate_elementwise(node, node.shape, operands);
  const std::string_view target = node.op == Op::kCustomCall ? custom_call_target(node) : std::string_view();
  throw Error(
      fmt::format("{}{}{} cannot be executed", def(node.op).name, target.empty() ? "" : " of ", target),
      "it can be planned, not run");
}

Literal evaluate_node(const Graph& graph, const Computation& computation, const Node& node, Values operands,
                      Rounding* rounding) {
  try {
    Literal result = dispatch(graph, computation, node, operands, rounding);
    if (rounding != nullptr) rounding->perturb(graph, computation, node, operands, result);
    return result;
  } catch (const Error& error) {
    if (error.line() > 0 || !error.file().empty()) throw;  // already names a node of a called computation
    throw Error(graph.source.empty() ? "graph" : graph.source, node.line, 0,
                fmt::format("'{}' in '{}': {}", node.name, computation.name, error.message()), error.hint());
  }
}

std::vector<Literal> evaluate_entry(const Graph& graph, std::span<const Literal> inputs,
                                    const Evaluation::Observer* observe, Rounding* rounding) {
  const Computation& entry = graph.entry_computation();
  if (inputs.size() != entry.parameters.size())
    throw Error(graph.source, 0, 0,
                fmt::format("{} inputs given, '{}' has {} parameters", inputs.size(), entry.name,
                            entry.parameters.size()));
  std::vector<const Literal*> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node& parameter = entry.node(entry.parameters[i]);
    if (!inputs[i].shape.compatible(parameter.shape))
      throw Error(graph.source, parameter.line, 0,
                  fmt::format("input {} is {}, parameter '{}' is {}", i, to_text(inputs[i].shape),
                              parameter.name, to_text(parameter.shape)));
    arguments.push_back(&inputs[i]);
  }
  Literal root = Evaluation(graph, entry, arguments, observe, rounding).run();
  if (root.shape.is_tuple) return std::move(root.elements);
  std::vector<Literal> results;
  results.push_back(std::move(root));
  return results;
}

double kept_bytes(const Node& node) {
  if (node.op == Op::kParameter || node.op == Op::kConstant) return 0;
  return static_cast<double>(node.shape.byte_size());
}

/// What evaluating one op takes beside the values: a matrix product's operands and result in float64, or what
/// the computations take that it runs; `peaks` of those.
double bytes_beside(const Computation& computation, const Node& node, const std::vector<double>& peaks) {
  double bytes = 0;
  for (const ComputationId called : node.attrs.computations) bytes = std::max(bytes, peaks[at(called)]);
  if (def(node.op).cls != OpClass::kLinear) return bytes;
  const auto in_float64 = [](const Node& of) { return 8.0 * static_cast<double>(of.shape.elements_count()); };
  bytes += in_float64(node);
  for (const NodeId operand : node.operands) bytes += in_float64(computation.node(operand));
  return bytes;
}

double peak(const Computation& computation, const std::vector<double>& peaks) {
  std::vector<int> uses(computation.nodes.size());
  for (const Node& node : computation.nodes)
    for (const NodeId operand : node.operands) ++uses[at(operand)];
  ++uses[at(computation.root)];
  double live = 0, most = 0;
  for (const Node& node : computation.nodes) {
    if (uses[at(node.id)] == 0) continue;
    live += kept_bytes(node);
    most = std::max(most, live + bytes_beside(computation, node, peaks));
    for (const NodeId operand : node.operands)
      if (--uses[at(operand)] == 0) live -= kept_bytes(computation.node(operand));
  }
  return most;
}

}  // namespace

Literal evaluate_node(const Graph& graph, const Computation& computation, const Node& node,
                      std::span<const Literal* const> operands) {
  return evaluate_node(graph, computation, node, operands, nullptr);
}

std::vector<Literal> evaluate(const Graph& graph, std::span<const Literal> inputs,
                              const std::function<void(const Node&, const Literal&)>& observe) {
  return evaluate_entry(graph, inputs, observe ? &observe : nullptr, nullptr);
}

std::vector<Literal> evaluate_rounded(const Graph& graph, std::span<const Literal> inputs,
                                      Rounding& rounding) {
  return evaluate_entry(graph, inputs, nullptr, &rounding);
}

double evaluation_bytes(const Graph& graph) {
  std::vector<double> peaks;  // callees precede callers
  for (const Computation& computation : graph.computations) peaks.push_back(peak(computation, peaks));
  return peaks[at(graph.entry)];
}

}  // namespace stitchwork
