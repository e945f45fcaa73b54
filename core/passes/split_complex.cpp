// Complex numbers as pairs of real ones, so that nothing that plans, generates, simulates or judges knows of
// them. Between ops a complex value is two arrays. Where it has to be one (parameters, results, elements of
// tuples, operands of FFT) it is an array of its parts with a last dimension of 2, the same bytes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "core/base/error.h"
#include "core/base/sorted.h"
#include "core/graph/complex_type.h"
#include "core/graph/rewrite.h"
#include "core/graph/window.h"
#include "core/passes/complex_functions.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace {

bool has_complex(const Shape& shape) {
  return shape.is_tuple ? std::ranges::any_of(shape.elements, has_complex) : is_complex(shape.dtype);
}

bool has_complex(const Graph& graph) {
  return std::ranges::any_of(graph.computations, [](const Computation& computation) {
    return std::ranges::any_of(computation.nodes, [](const Node& node) { return has_complex(node.shape); });
  });
}

/// Complex arrays with a last dimension for their parts, innermost in memory.
Shape paired(const Shape& shape) {
  Shape result = shape;
  for (Shape& element : result.elements) element = paired(element);
  if (shape.is_tuple || !is_complex(shape.dtype)) return result;
  result.dtype = part_of(shape.dtype);
  result.dims.push_back(2);
  if (!shape.minor_to_major.empty())
    result.minor_to_major.insert(result.minor_to_major.begin(), shape.rank());
  return result;
}

/// The array of one part.
Shape part_shape(const Shape& shape) {
  Shape result = shape;
  result.dtype = part_of(shape.dtype);
  return result;
}

std::shared_ptr<const Literal> part_of(const Literal& literal, std::int64_t which) {
  Literal part = Literal::zeros(Shape::array(part_of(literal.shape.dtype), literal.shape.dims));
  const auto size = static_cast<std::size_t>(byte_size(part.shape.dtype));
  for (std::size_t i = 0, n = part.bytes.size() / size; i < n; ++i)
    std::copy_n(
        literal.bytes.begin() + static_cast<std::ptrdiff_t>((2 * i + static_cast<std::size_t>(which)) * size),
        size, part.bytes.begin() + static_cast<std::ptrdiff_t>(i * size));
  return std::make_shared<const Literal>(std::move(part));
}

/// A reducer or a scatter's update whose real part depends on real parts alone, and so its imaginary part:
/// the same computation on real numbers does for both.
bool is_by_parts(const Computation& body) {
  return std::ranges::all_of(body.nodes, [](const Node& node) {
    if (node.shape.is_tuple || !is_complex(node.shape.dtype)) return false;
    return node.op == Op::kParameter || node.op == Op::kAdd || node.op == Op::kSubtract ||
           node.op == Op::kNegate || node.op == Op::kCopy;
  });
}

/// Ops that sum by a reducer that is by parts: each part is what the op gives for that part, as with ops that
/// move elements. Operands that are not complex (indices, conditions) are the same for both.
bool sums_parts(const Graph& graph, const Node& node) {
  if (node.shape.is_tuple) return false;
  return (node.op == Op::kReduce || node.op == Op::kReduceWindow || node.op == Op::kScatter) &&
         is_by_parts(graph.computation(applied(node)));
}

/// Bodies of loops and branches: what they take and give is paired, as their callers' tuples are.
bool is_control(Op op) { return op == Op::kWhile || op == Op::kConditional; }

class Splitter;

/// The computations of the new graph, callees first, each made when it is first called.
class Module {
 public:
  Module(const Graph& graph, OpTrace* trace) : from_(graph), trace_(trace), result_(head_of(graph)) {
    for (const Computation& computation : graph.computations) names_.insert(computation.name);
  }

  Graph run();
  const Graph& from() const { return from_; }
  OpTrace* trace() const { return trace_; }
  /// With its complex values in pairs.
  ComputationId split(ComputationId id);
  /// As it is: called by what is left as it is.
  ComputationId kept(ComputationId id);
  /// A computation of complex scalars on real ones (is_by_parts).
  ComputationId real(ComputationId id);

 private:
  using Made = std::map<ComputationId, ComputationId>;

  ComputationId add(Computation computation, ComputationId source) {
    if (!taken_.insert(source).second) {
      std::string name = computation.name;
      for (int i = 1; names_.contains(name); ++i) name = fmt::format("{}.{}", computation.name, i);
      names_.insert(name);
      computation.name = name;
    }
    result_.computations.push_back(std::move(computation));
    return static_cast<ComputationId>(result_.computations.size()) - 1;
  }

  const Graph& from_;
  OpTrace* trace_;
  Graph result_;
  Made split_, kept_, real_;
  std::set<ComputationId> taken_;  ///< whose name the new graph has
  std::set<std::string> names_;
};

/// A value of the old computation in the new one.
struct Place {
  NodeId whole = kNoNode;  ///< of what is not complex; else the pairs, where they are one array already
  ComplexParts parts;
};

class Splitter {
 public:
  Splitter(Module& module, const Computation& computation)
      : module_(module), computation_(computation), builder_(computation.name) {}

  Computation run() {
    for (const Node& node : computation_.nodes) builder_.reserve(node.name);
    std::vector<NodeId> first, values;
    for (const Node& node : computation_.nodes) {
      first.push_back(builder_.peek().size());
      places_.push_back(placed(node));
      const Place& place = places_.back();
      values.push_back(place.whole != kNoNode ? place.whole : place.parts.re);
      if (module_.trace() != nullptr) tell(node, first.back(), values.back());
    }
    Emitter emit(builder_, computation_.node(computation_.root));
    const NodeId root = whole(emit, computation_.root);
    first.push_back(builder_.peek().size());
    Computation result = std::move(builder_).finish(root);
    result.attributes = computation_.attributes;
    result.imported = moved(computation_.imported, first, values);
    add_imaginary_roots(result, values);
    return result;
  }

 private:
  const Place& place(NodeId id) const { return places_[static_cast<std::size_t>(id)]; }
  const Shape& shape(NodeId id) const { return computation_.node(id).shape; }
  bool takes_complex(const Node& node) const {
    return std::ranges::any_of(node.operands, [&](NodeId id) { return has_complex(shape(id)); });
  }

  NodeId whole(Emitter& emit, NodeId id) const {
    const Place& at = place(id);
    if (at.whole != kNoNode) return at.whole;
    std::vector<std::int64_t> dims = shape(id).dims;
    dims.push_back(1);
    const NodeId re = emit.reshape(at.parts.re, dims), im = emit.reshape(at.parts.im, dims);
    Attributes attributes;
    attributes.dimensions = {shape(id).rank()};
    return emit.add(Op::kConcatenate, paired(shape(id)), {re, im}, attributes);
  }

  /// Of an array of pairs.
  Place taken_apart(Emitter& emit, NodeId pairs) const {
    std::vector<std::int64_t> dims = emit.shape(pairs).dims;
    dims.pop_back();
    const auto part = [&](std::int64_t i) {
      return emit.reshape(emit.slice(pairs, dims.size(), {i, i + 1, 1}), dims);
    };
    const NodeId re = part(0);
    return {pairs, {re, part(1)}};
  }

  /// What a node gives, by the kind of its shape.
  Place given(Emitter& emit, const Node& node, NodeId id) const {
    return !node.shape.is_tuple && is_complex(node.shape.dtype) ? taken_apart(emit, id) : Place{id, {}};
  }

  Place placed(const Node& node) {
    Emitter emit(builder_, node);
    if (!has_complex(node.shape) && !takes_complex(node)) return {copied(node, emit, true), {}};
    switch (node.op) {
      case Op::kParameter:
      case Op::kTuple:
      case Op::kGetTupleElement:
      case Op::kWhile:
      case Op::kConditional:
      case Op::kFft:
        return given(emit, node, copied(node, emit, true));
      case Op::kCopy:
      case Op::kOptimizationBarrier:
        if (node.shape.is_tuple) return {copied(node, emit, true), {}};
        break;
      case Op::kConstant:
        return {kNoNode, constant(node, emit)};
      case Op::kIota: {
        const NodeId re = emit.add(Op::kIota, part_shape(node.shape), {}, node.attrs);
        return {kNoNode, {re, emit.fill(part_shape(node.shape), 0)}};
      }
      default:
        break;
    }
    if (def(node.op).moves_elements || sums_parts(module_.from(), node))
      return {kNoNode, by_parts(node, emit)};
    if (node.op == Op::kDot || node.op == Op::kConvolution) return {kNoNode, product(node, emit)};
    if (const std::optional<Place> written = elementwise(node, emit)) return *written;
    return left(node, emit);
  }

  /// With paired operands and result.
  NodeId copied(const Node& node, Emitter& emit, bool in_pairs) {
    Node copy = node;
    if (in_pairs) copy.shape = paired(node.shape);
    for (NodeId& operand : copy.operands) operand = whole(emit, operand);
    for (ComputationId& callee : copy.attrs.computations)
      callee = is_control(node.op) ? module_.split(callee) : module_.kept(callee);
    return builder_.add_reserved(std::move(copy));
  }

  static ComplexParts constant(const Node& node, Emitter& emit) {
    const auto part = [&](std::int64_t which) {
      Attributes attributes = node.attrs;
      if (node.attrs.literal != nullptr) attributes.literal = part_of(*node.attrs.literal, which);
      return emit.add(Op::kConstant, part_shape(node.shape), {}, attributes);
    };
    const NodeId re = part(0);
    return {re, part(1)};
  }

  ComplexParts by_parts(const Node& node, Emitter& emit) {
    Attributes attributes = node.attrs;
    for (ComputationId& callee : attributes.computations) callee = module_.real(callee);
    const auto part = [&](NodeId ComplexParts::*which) {
      std::vector<NodeId> operands;
      for (const NodeId id : node.operands)
        operands.push_back(is_complex(shape(id).dtype) ? place(id).parts.*which : place(id).whole);
      return emit.add(node.op, part_shape(node.shape), operands, attributes);
    };
    const NodeId re = part(&ComplexParts::re);
    return {re, part(&ComplexParts::im)};
  }

  ComplexParts product(const Node& node, Emitter& emit) const {
    const auto factor = [&](NodeId id) {
      return is_complex(shape(id).dtype) ? place(id).parts : ComplexParts{place(id).whole, kNoNode};
    };
    const ComplexParts a = factor(node.operands[0]), b = factor(node.operands[1]);
    const Shape real = part_shape(node.shape);
    const auto times = [&](NodeId x, NodeId y) { return emit.add(node.op, real, {x, y}, node.attrs); };
    const auto joined = [&](Op op, NodeId x, NodeId y, NodeId z, NodeId w) {
      const bool one = x != kNoNode && y != kNoNode, other = z != kNoNode && w != kNoNode;
      if (!one) return times(z, w);
      return other ? emit.binary(op, times(x, y), times(z, w)) : times(x, y);
    };
    const NodeId re = joined(Op::kSubtract, a.re, b.re, a.im, b.im);
    return {re, joined(Op::kAdd, a.re, b.im, a.im, b.re)};
  }

  std::optional<Place> elementwise(const Node& node, Emitter& emit) const {
    std::vector<ComplexParts> operands;
    for (const NodeId id : node.operands) operands.push_back(place(id).parts);
    const auto real = [&](NodeId value) { return Place{emit.convert(value, node.shape.dtype), {}}; };
    switch (node.op) {
      case Op::kReal:
      case Op::kImag:
        return real(node.op == Op::kReal ? operands[0].re : operands[0].im);
      case Op::kAbs:
        return real(complex_abs(emit, operands[0]));
      case Op::kComplex:
        return Place{kNoNode, {place(node.operands[0]).whole, place(node.operands[1]).whole}};
      case Op::kConvert: {
        if (!is_complex(node.shape.dtype)) return real(operands[0].re);
        const DType type = part_of(node.shape.dtype);
        if (operands[0].re != kNoNode)
          return Place{kNoNode, {emit.convert(operands[0].re, type), emit.convert(operands[0].im, type)}};
        const NodeId re = emit.convert(place(node.operands[0]).whole, type);
        return Place{kNoNode, {re, emit.fill(part_shape(node.shape), 0)}};
      }
      case Op::kCompare: {
        const bool equal = node.attrs.comparison == Comparison::kEq;
        if (!equal && node.attrs.comparison != Comparison::kNe) return std::nullopt;
        const NodeId re = emit.compare(*node.attrs.comparison, operands[0].re, operands[1].re);
        const NodeId im = emit.compare(*node.attrs.comparison, operands[0].im, operands[1].im);
        return Place{emit.binary(equal ? Op::kAnd : Op::kOr, re, im), {}};
      }
      default:
        break;
    }
    if (!is_complex(node.shape.dtype) || !is_elementwise(node.op)) return std::nullopt;
    const std::optional<ComplexParts> parts = complex_function(emit, node.op, operands);
    if (!parts) return std::nullopt;
    return Place{kNoNode, *parts};
  }

  /// Not written here: it stays complex, and whoever runs it refuses it by name.
  Place left(const Node& node, Emitter& emit) {
    Node copy = node;
    for (NodeId& operand : copy.operands) {
      const Shape& before = shape(operand);
      const NodeId pairs = whole(emit, operand);
      operand = !before.is_tuple && is_complex(before.dtype) ? emit.add(Op::kBitcastConvert, before, {pairs})
                                                             : pairs;
    }
    for (ComputationId& callee : copy.attrs.computations) callee = module_.kept(callee);
    const NodeId made = builder_.add_reserved(std::move(copy));
    const auto in_pairs = [&](NodeId value, const Shape& before) {
      return has_complex(before) ? emit.add(Op::kBitcastConvert, paired(before), {value}) : value;
    };
    if (!node.shape.is_tuple) return given(emit, node, in_pairs(made, node.shape));
    std::vector<NodeId> elements;
    for (std::size_t i = 0; i < node.shape.elements.size(); ++i) {
      Attributes attributes;
      attributes.tuple_index = static_cast<std::int64_t>(i);
      const Shape& element = node.shape.elements[i];
      elements.push_back(in_pairs(emit.add(Op::kGetTupleElement, element, {made}, attributes), element));
    }
    return {emit.add(Op::kTuple, paired(node.shape), elements), {}};
  }

  /// `value`: of the node, or of its real part; it may have been there before.
  void tell(const Node& node, NodeId first, NodeId value) const {
    const Computation& built = builder_.peek();
    std::vector<OpName> into;
    bool stays = false;
    for (NodeId id = first; id < built.size(); ++id) {
      stays = stays || built.node(id).name == node.name;
      if (id != value) into.push_back({computation_.name, built.node(id).name});
    }
    into.push_back({computation_.name, built.node(value).name});
    if (!stays) module_.trace()->add(OpChange::kRewritten, {computation_.name, node.name}, std::move(into));
  }

  /// A compiler's kernel that gives a complex value gives both parts.
  void add_imaginary_roots(Computation& result, const std::vector<NodeId>& values) const {
    std::map<NodeId, NodeId> imaginary;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (places_[i].whole == kNoNode) imaginary[values[i]] = places_[i].parts.im;
    for (ImportedKernel& kernel : result.imported) {
      std::vector<NodeId> more;
      for (const NodeId root : kernel.roots)
        if (const auto at = imaginary.find(root); at != imaginary.end()) more.push_back(at->second);
      kernel.roots.insert(kernel.roots.end(), more.begin(), more.end());
      sort_unique(kernel.roots);
    }
  }

  Module& module_;
  const Computation& computation_;
  ComputationBuilder builder_;
  std::vector<Place> places_;
};

ComputationId Module::split(ComputationId id) {
  if (const auto at = split_.find(id); at != split_.end()) return at->second;
  Computation made = Splitter(*this, from_.computation(id)).run();
  return split_[id] = add(std::move(made), id);
}

ComputationId Module::kept(ComputationId id) {
  if (const auto at = kept_.find(id); at != kept_.end()) return at->second;
  Computation made = from_.computation(id);
  for (Node& node : made.nodes)
    for (ComputationId& callee : node.attrs.computations) callee = kept(callee);
  return kept_[id] = add(std::move(made), id);
}

ComputationId Module::real(ComputationId id) {
  if (const auto at = real_.find(id); at != real_.end()) return at->second;
  if (!is_by_parts(from_.computation(id))) return kept(id);
  Computation made = from_.computation(id);
  for (Node& node : made.nodes) node.shape = part_shape(node.shape);
  return real_[id] = add(std::move(made), id);
}

Graph Module::run() {
  const ComputationId entry = split(from_.entry);
  // What nothing calls, for who asks about its ops.
  for (std::size_t i = 0; i < from_.computations.size(); ++i)
    if (const auto id = static_cast<ComputationId>(i); !taken_.contains(id)) kept(id);
  result_.entry = entry;
  return std::move(result_);
}

}  // namespace

bool any_complex(const Graph& graph) { return has_complex(graph); }

Graph split_complex(const Graph& graph, OpTrace* trace) {
  if (!has_complex(graph)) return graph;
  return Module(graph, trace).run();
}

}  // namespace stitchwork
