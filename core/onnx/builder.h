// Builds a graph from primitives of the op table, computing at once whatever is known while the model is
// read. Operands broadcast as in ONNX (NumPy): element-wise ops of different shapes get the broadcasts they
// need.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph/window.h"
#include "core/onnx/value.h"

namespace stitchwork::onnx_reader {

/// Largest array a model may name, in elements: sizes beyond are mistakes or attacks, and their products
/// would overflow.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

struct ScatterSpec {
  Dims update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims;
  std::int64_t index_vector_dim = 0;
};

struct ConvolutionSpec {
  std::vector<WindowDim> window;  ///< of the spatial dimensions
  std::int64_t groups = 1;
  std::string labels;  ///< dim_labels
};

/// A node of which all but the op is at its default.
inline Node op_node(Op op) {
  Node node;
  node.op = op;
  return node;
}

class Builder {
 public:
  explicit Builder(std::string source);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // --- Known values.
  static Value known(Literal literal);
  static Value integers(const Dims& values);       ///< s64[n]
  static Value integer(std::int64_t value);        ///< s64[]
  static Value scalar(DType dtype, double value);  ///< rank 0
  static Value scalar_int(DType dtype, std::int64_t value);
  static Value lowest(DType dtype);   ///< -inf, or the smallest integer: the identity of maximum
  static Value highest(DType dtype);  ///< the identity of minimum
  /// `value` in every element of `dims`.
  Value full(const Value& value, const Dims& dims);

  // --- Element-wise.
  Value unary(Op op, const Value& x);
  Value binary(Op op, const Value& x, const Value& y);
  Value add(const Value& x, const Value& y) { return binary(Op::kAdd, x, y); }
  Value sub(const Value& x, const Value& y) { return binary(Op::kSubtract, x, y); }
  Value mul(const Value& x, const Value& y) { return binary(Op::kMultiply, x, y); }
  Value div(const Value& x, const Value& y) { return binary(Op::kDivide, x, y); }
  Value max(const Value& x, const Value& y) { return binary(Op::kMaximum, x, y); }
  Value min(const Value& x, const Value& y) { return binary(Op::kMinimum, x, y); }
  // The same with a number of x's type on the right.
  Value add(const Value& x, double y) { return add(x, scalar(x.dtype(), y)); }
  Value sub(const Value& x, double y) { return sub(x, scalar(x.dtype(), y)); }
  Value mul(const Value& x, double y) { return mul(x, scalar(x.dtype(), y)); }
  Value div(const Value& x, double y) { return div(x, scalar(x.dtype(), y)); }
  Value max(const Value& x, double y) { return max(x, scalar(x.dtype(), y)); }
  Value min(const Value& x, double y) { return min(x, scalar(x.dtype(), y)); }
  Value neg(const Value& x) { return unary(Op::kNegate, x); }
  Value compare(Comparison comparison, const Value& x, const Value& y);
  Value compare(Comparison comparison, const Value& x, double y) {
    return compare(comparison, x, scalar(x.dtype(), y));
  }
  Value select(const Value& condition, const Value& if_true, const Value& if_false);
  Value convert(const Value& x, DType dtype);
  Value bitcast(const Value& x, DType dtype);

  // --- Moving elements.
  Value reshape(const Value& x, const Dims& dims);
  /// To `dims`, aligned at the last dimension.
  Value broadcast(const Value& x, const Dims& dims);
  /// Operand dimension i becomes result dimension where[i].
  Value broadcast_in(const Value& x, const Dims& dims, const Dims& where);
  Value transpose(const Value& x, const Dims& permutation);
  Value slice(const Value& x, const std::vector<SliceSpec>& ranges);
  /// [start, limit) of one dimension.
  Value slice(const Value& x, std::int64_t dim, std::int64_t start, std::int64_t limit,
              std::int64_t stride = 1);
  Value reverse(const Value& x, const Dims& dims);
  Value pad(const Value& x, const Value& padding_value, const std::vector<PadSpec>& padding);
  Value concatenate(const std::vector<Value>& parts, std::int64_t dim);
  Value iota(DType dtype, const Dims& dims, std::int64_t dim);

  // --- Indices.
  Value gather(const Value& x, const Value& indices, const GatherDims& dims);
  /// Updates combined by `combine`; none: the update replaces.
  Value scatter(const Value& x, const Value& indices, const Value& updates, const ScatterSpec& spec,
                std::optional<Op> combine = std::nullopt);
  Value dynamic_slice(const Value& x, const std::vector<Value>& starts, const Dims& sizes);
  Value dynamic_update_slice(const Value& x, const Value& update, const std::vector<Value>& starts);

  // --- Reductions, windows, products, sorting.
  /// By add, multiply, maximum, minimum, and, or; from that op's identity.
  Value reduce(Op op, const Value& x, const Dims& dims, bool keep_dims = false);
  Value reduce_window(Op op, const Value& x, const Value& init, const std::vector<WindowDim>& window);
  Value dot(const Value& x, const Value& y, const DotDims& dims, std::optional<DType> result = std::nullopt);
  Value convolution(const Value& x, const Value& kernel, const ConvolutionSpec& spec,
                    std::optional<DType> result = std::nullopt);
  /// Sorts `keys` along `dim`, the other operands with them; stable.
  std::vector<Value> sort(const Value& keys, const std::vector<Value>& others, std::int64_t dim,
                          bool descending);

  // --- Anything else.
  /// Adds a node of these operands, shape inferred (node.shape gives what inference leaves open), or computes
  /// it if all are known and it is cheap enough.
  Value emit(Node node, const std::vector<Value>& operands);
  std::vector<Value> emit_tuple(Node node, const std::vector<Value>& operands);
  /// A computation that others apply (a reducer, ...). `body` gets its parameters and gives its results
  /// (several: a tuple); it may use known values, but none of enclosing computations.
  ComputationId computation(const std::string& name, const std::vector<Shape>& parameters,
                            const std::function<std::vector<Value>(const std::vector<Value>&)>& body);
  /// body(state) while condition(state); both may use values from outside.
  std::vector<Value> while_loop(const std::vector<Value>& state,
                                const std::function<Value(const std::vector<Value>&)>& condition,
                                const std::function<std::vector<Value>(const std::vector<Value>&)>& body);
  /// Both branches give values of equal shapes; they may use values from outside.
  std::vector<Value> conditional(const Value& predicate, const std::function<std::vector<Value>()>& if_true,
                                 const std::function<std::vector<Value>()>& if_false);

  // --- The frame.
  Value parameter(const std::string& name, const Shape& shape);
  /// What the nodes added from here on belong to: their names begin with `label`, their metadata is this.
  void set_origin(std::string label, Metadata metadata);
  /// The node of a value that an ONNX node gives is named after it.
  void name_result(const Value& value);
  Graph finish(std::string name, const std::vector<Value>& results) &&;

 private:
  /// A computation being built; the innermost is the last. Values name the scope they belong to.
  struct Scope {
    ComputationBuilder nodes;
    int id = 0;
    bool may_capture = false;
    std::int64_t parameters = 0;
    std::vector<Value> captures;                           ///< values of enclosing scopes, as parameters here
    std::map<std::pair<int, NodeId>, NodeId> captured;     ///< where those parameters are
    std::unordered_map<const Literal*, NodeId> constants;  ///< known values already given a node
    std::vector<std::shared_ptr<const Literal>> kept;      ///< their keys stay alive
    std::unordered_set<std::string> labels;
    std::vector<std::pair<NodeId, std::string>> renames;
  };
  /// A computation of array parameters: those asked for, then one a captured value.
  struct Flat {
    Computation computation;
    std::vector<Value> captures;
  };
  using Body = std::function<std::vector<Value>(const std::vector<Value>&)>;

  Scope& scope() { return scopes_.back(); }
  void open_scope(const std::string& name, bool may_capture);
  Computation close_scope(const std::vector<Value>& results, bool always_tuple);
  Flat flat_computation(const std::string& name, const std::vector<Shape>& parameters, const Body& body,
                        bool may_capture, bool always_tuple);
  ComputationId add_computation(Computation computation);
  NodeId node_of(const Value& value, std::size_t depth);
  NodeId constant_node(const Value& value, std::size_t depth);
  Value folded(Node node, const std::vector<Value>& operands);
  NodeId add_node(Node node, std::size_t depth);
  void describe(Node& node) const;
  ComputationId reducer(Op op, DType dtype);
  bool may_fold(const Node& node, const std::vector<Value>& operands);
  std::string unique_computation_name(const std::string& name);

  Graph graph_;
  std::vector<Scope> scopes_;
  int next_scope_ = 0;
  std::string label_;
  Metadata metadata_;
  std::map<std::pair<Op, DType>, ComputationId> reducers_;
  std::unordered_set<std::string> computation_names_;
  double work_left_;         ///< of folding, in element operations
  std::int64_t bytes_left_;  ///< of folded values
  std::int64_t nodes_left_;
};

/// The shape ONNX's (NumPy's) broadcasting gives. Throws Error where they do not fit.
Dims broadcast_dims(const Dims& a, const Dims& b);
std::int64_t product(const Dims& dims);
/// `{size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=.. rhs_dilate=..}`, as HLO has it: defaults are left out.
std::string window_text(const std::vector<WindowDim>& window);

}  // namespace stitchwork::onnx_reader
