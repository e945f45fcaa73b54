// Shape inference: what HLO semantics give an op for its operands' shapes. Two families have files of their
// own: windows and products in infer_linear.cpp.
#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/graph.h"
#include "core/infer_linear.h"
#include "core/op.h"

namespace stitchwork {
namespace {

using Operands = std::span<const Shape* const>;

std::string dims_text(const std::vector<std::int64_t>& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

Shape plain(const Shape& shape) {
  if (!shape.is_tuple) return Shape::array(shape.dtype, shape.dims);
  std::vector<Shape> elements;
  for (const Shape& element : shape.elements) elements.push_back(plain(element));
  return Shape::tuple(std::move(elements));
}

/// One shape, or a tuple of several.
Shape packed(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes.front()) : Shape::tuple(std::move(shapes));
}

const Shape& array(const Node& node, Operands operands, std::size_t i) {
  if (operands[i]->is_tuple)
    throw Error(fmt::format("operand {} of {} is a tuple, an array is needed", i, def(node.op).name));
  return *operands[i];
}

bool is_complex(DType type) { return type == DType::kC64 || type == DType::kC128; }

bool in_domain(DType type, Domain domain) {
  switch (domain) {
    case Domain::kAny:
      return true;
    case Domain::kNumeric:
      return type == DType::kPred || is_integral(type) || is_floating(type) || is_complex(type);
    case Domain::kSigned:
      return is_integral(type) || is_floating(type) || is_complex(type);
    case Domain::kFloat:
      return is_floating(type) || is_complex(type);
    case Domain::kReal:
      return is_floating(type);
    case Domain::kOrdered:
      return type == DType::kPred || is_integral(type) || is_floating(type);
    case Domain::kIntegral:
      return is_integral(type);
    case Domain::kBits:
      return type == DType::kPred || is_integral(type);
  }
  return false;
}

void check_domain(const Node& node, const Shape& shape) {
  if (!in_domain(shape.dtype, def(node.op).domain))
    throw Error(fmt::format("{} does not take {}", def(node.op).name, name(shape.dtype)));
}

void check_same_dims(const Node& node, const Shape& a, const Shape& b) {
  if (a.dims != b.dims)
    throw Error(fmt::format("operands of {} have different dimensions {} and {}", def(node.op).name,
                            dims_text(a.dims), dims_text(b.dims)),
                "HLO broadcasts only by an explicit broadcast op");
}

void check_same_dtype(const Node& node, const Shape& a, const Shape& b) {
  if (a.dtype != b.dtype)
    throw Error(fmt::format("operands of {} have different types {} and {}", def(node.op).name, name(a.dtype),
                            name(b.dtype)),
                "insert a convert");
}

void check_dimension(const Node& node, std::int64_t dim, int rank) {
  if (dim < 0 || dim >= rank)
    throw Error(fmt::format("{} names dimension {} of an operand of rank {}", def(node.op).name, dim, rank));
}

void check_distinct(const Node& node, const std::vector<std::int64_t>& dims, int rank) {
  std::set<std::int64_t> seen;
  for (std::int64_t dim : dims) {
    check_dimension(node, dim, rank);
    if (!seen.insert(dim).second)
      throw Error(fmt::format("{} names dimension {} twice", def(node.op).name, dim));
  }
}

const Computation& named_computation(const Graph& graph, const Node& node, std::size_t i) {
  if (i >= node.attrs.computations.size())
    throw Error(fmt::format("{} names no computation", def(node.op).name),
                "give it to_apply, calls, body, ...");
  const ComputationId id = node.attrs.computations[i];
  SW_CHECK(id >= 0 && id < static_cast<ComputationId>(graph.computations.size()), "computation {}", id);
  return graph.computation(id);
}

const Shape& root_shape(const Graph& graph, const Node& node, std::size_t i) {
  const Computation& computation = named_computation(graph, node, i);
  return computation.node(computation.root).shape;
}

Shape elementwise(const Graph& graph, const Node& node, Operands operands) {
  const Shape& first = array(node, operands, 0);
  const Op op = node.op;
  if (op == Op::kSelect || op == Op::kClamp) {
    // The predicate of select and the bounds of clamp may be scalars.
    const std::size_t value = 1;
    const Shape& shape = array(node, operands, value);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Shape& other = array(node, operands, i);
      const bool may_be_scalar = op == Op::kClamp ? i != value : i == 0;
      if (!(may_be_scalar && other.rank() == 0)) check_same_dims(node, shape, other);
      if (op == Op::kClamp || i != 0) check_same_dtype(node, shape, other);
    }
    if (op == Op::kSelect && first.dtype != DType::kPred)
      throw Error(fmt::format("select's first operand is {}, pred is needed", name(first.dtype)));
    check_domain(node, shape);
    return plain(shape);
  }
  for (std::size_t i = 1; i < operands.size(); ++i) {
    check_same_dims(node, first, array(node, operands, i));
    if (op != Op::kMap) check_same_dtype(node, first, *operands[i]);
  }
  check_domain(node, first);
  DType type = first.dtype;
  switch (op) {
    case Op::kCompare:
    case Op::kIsFinite:
      type = DType::kPred;
      break;
    case Op::kReal:
    case Op::kImag:
      type = type == DType::kC64 ? DType::kF32 : type == DType::kC128 ? DType::kF64 : type;
      break;
    case Op::kAbs:
      type = type == DType::kC64 ? DType::kF32 : type == DType::kC128 ? DType::kF64 : type;
      break;
    case Op::kComplex:
      if (type != DType::kF32 && type != DType::kF64)
        throw Error(fmt::format("complex does not take {}", name(type)), "f32 and f64 have complex types");
      type = type == DType::kF64 ? DType::kC128 : DType::kC64;
      break;
    case Op::kConvert:
      type = node.shape.dtype;
      break;
    case Op::kMap:
      type = root_shape(graph, node, 0).dtype;
      break;
    default:
      break;
  }
  return Shape::array(type, first.dims);
}

/// bitcast-convert between types of different width adds or takes the minor-most dimension.
Shape bitcast_convert(const Node& node, const Shape& from) {
  const DType type = node.shape.dtype;
  const int wide = byte_size(from.dtype), narrow = byte_size(type);
  Shape result = Shape::array(type, from.dims);
  if (wide == 0 || narrow == 0)
    throw Error(fmt::format("cannot bitcast-convert {} to {}", name(from.dtype), name(type)));
  if (wide > narrow) {
    result.dims.push_back(wide / narrow);
  } else if (wide < narrow) {
    if (from.dims.empty() || from.dims.back() != narrow / wide)
      throw Error(fmt::format("bitcast-convert of {} to {} needs a last dimension of {}", name(from.dtype),
                              name(type), narrow / wide));
    result.dims.pop_back();
  }
  return result;
}

Shape broadcast(const Node& node, const Shape& from) {
  const auto& dims = node.attrs.dimensions;
  const Shape result = Shape::array(from.dtype, node.shape.dims);
  if (static_cast<int>(dims.size()) != from.rank())
    throw Error(fmt::format("broadcast of {} lists {} dimensions, {} are needed", dims_text(from.dims),
                            dims.size(), from.rank()));
  check_distinct(node, dims, result.rank());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (result.dims[static_cast<std::size_t>(dims[i])] != from.dims[i])
      throw Error(
          fmt::format("broadcast puts operand dimension {} of extent {} on result dimension {} of extent {}",
                      i, from.dims[i], dims[i], result.dims[static_cast<std::size_t>(dims[i])]));
  return result;
}

Shape reshape(const Node& node, const Shape& from) {
  const Shape result = Shape::array(from.dtype, node.shape.dims);
  if (result.elements_count() != from.elements_count())
    throw Error(fmt::format("reshape of {} to {} changes the number of elements from {} to {}",
                            dims_text(from.dims), dims_text(result.dims), from.elements_count(),
                            result.elements_count()));
  return result;
}

Shape bitcast(const Node& node, const Shape& from) {
  if (node.shape.byte_size() != from.byte_size())
    throw Error(fmt::format("bitcast of {} to {} changes the size from {} to {} bytes", to_text(from),
                            to_text(node.shape), from.byte_size(), node.shape.byte_size()));
  return plain(node.shape);
}

Shape transpose(const Node& node, const Shape& from) {
  const auto& dims = node.attrs.dimensions;
  if (static_cast<int>(dims.size()) != from.rank())
    throw Error(fmt::format("transpose of {} lists {} dimensions", dims_text(from.dims), dims.size()));
  check_distinct(node, dims, from.rank());
  Shape result = Shape::array(from.dtype, {});
  for (std::int64_t dim : dims) result.dims.push_back(from.dims[static_cast<std::size_t>(dim)]);
  return result;
}

Shape slice(const Node& node, const Shape& from) {
  if (node.attrs.slice.size() != from.dims.size())
    throw Error(fmt::format("slice of {} gives {} ranges", dims_text(from.dims), node.attrs.slice.size()));
  Shape result = Shape::array(from.dtype, {});
  for (std::size_t i = 0; i < from.dims.size(); ++i) {
    const SliceSpec& s = node.attrs.slice[i];
    if (s.start < 0 || s.limit < s.start || s.limit > from.dims[i] || s.stride < 1)
      throw Error(fmt::format("slice range [{}:{}:{}] does not fit dimension {} of extent {}", s.start,
                              s.limit, s.stride, i, from.dims[i]));
    result.dims.push_back((s.limit - s.start + s.stride - 1) / s.stride);
  }
  return result;
}

Shape concatenate(const Node& node, Operands operands) {
  Shape result = plain(array(node, operands, 0));
  if (node.attrs.dimensions.size() != 1) throw Error("concatenate needs dimensions={D} with one dimension");
  const std::int64_t dim = node.attrs.dimensions[0];
  check_dimension(node, dim, result.rank());
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Shape& next = array(node, operands, i);
    check_same_dtype(node, result, next);
    Shape expected = result;
    if (next.rank() == result.rank())
      expected.dims[static_cast<std::size_t>(dim)] = next.dims[static_cast<std::size_t>(dim)];
    if (expected.dims != next.dims)
      throw Error(fmt::format("concatenate along dimension {}: operand {} is {}, operand 0 {}", dim, i,
                              dims_text(next.dims), dims_text(operands[0]->dims)));
    result.dims[static_cast<std::size_t>(dim)] += next.dims[static_cast<std::size_t>(dim)];
  }
  return result;
}

Shape pad(const Node& node, Operands operands) {
  const Shape& from = array(node, operands, 0);
  check_same_dtype(node, from, array(node, operands, 1));
  if (operands[1]->rank() != 0)
    throw Error(fmt::format("pad's value is {}, a scalar is needed", to_text(*operands[1])));
  if (node.attrs.padding.size() != from.dims.size())
    throw Error(fmt::format("pad of {} gives {} paddings", dims_text(from.dims), node.attrs.padding.size()));
  Shape result = Shape::array(from.dtype, {});
  for (std::size_t i = 0; i < from.dims.size(); ++i) {
    const PadSpec& p = node.attrs.padding[i];
    const std::int64_t inner = from.dims[i] == 0 ? 0 : from.dims[i] + p.interior * (from.dims[i] - 1);
    const std::int64_t extent = inner + p.low + p.high;
    if (p.interior < 0 || extent < 0)
      throw Error(fmt::format("padding {}_{}_{} does not fit dimension {} of extent {}", p.low, p.high,
                              p.interior, i, from.dims[i]));
    result.dims.push_back(extent);
  }
  return result;
}

Shape gather(const Node& node, Operands operands) {
  const Shape& from = array(node, operands, 0);
  const Shape& indices = array(node, operands, 1);
  if (!node.attrs.gather)
    throw Error("gather lacks its dimension numbers", "offset_dims=, start_index_map=, ...");
  const GatherDims& g = *node.attrs.gather;
  if (!is_integral(indices.dtype)) throw Error(fmt::format("gather's indices are {}", name(indices.dtype)));
  if (g.slice_sizes.size() != from.dims.size())
    throw Error(
        fmt::format("gather from {} gives {} slice sizes", dims_text(from.dims), g.slice_sizes.size()));
  for (std::size_t i = 0; i < from.dims.size(); ++i)
    if (g.slice_sizes[i] < 0 || g.slice_sizes[i] > from.dims[i])
      throw Error(fmt::format("gather's slice size {} exceeds dimension {} of extent {}", g.slice_sizes[i], i,
                              from.dims[i]));
  if (g.index_vector_dim < 0 || g.index_vector_dim > indices.rank())
    throw Error(fmt::format("gather's index_vector_dim {} is outside indices of rank {}", g.index_vector_dim,
                            indices.rank()));
  check_distinct(node, g.start_index_map, from.rank());
  check_distinct(node, g.collapsed_slice_dims, from.rank());
  check_distinct(node, g.operand_batching_dims, from.rank());
  check_distinct(node, g.start_indices_batching_dims, indices.rank());
  const std::int64_t vector_length =
      g.index_vector_dim == indices.rank() ? 1 : indices.dims[static_cast<std::size_t>(g.index_vector_dim)];
  if (static_cast<std::int64_t>(g.start_index_map.size()) != vector_length)
    throw Error(fmt::format("gather's start_index_map has {} entries, an index vector {}",
                            g.start_index_map.size(), vector_length));
  std::vector<std::int64_t> window, batch;
  for (int i = 0; i < from.rank(); ++i)
    if (std::ranges::count(g.collapsed_slice_dims, i) + std::ranges::count(g.operand_batching_dims, i) == 0)
      window.push_back(g.slice_sizes[static_cast<std::size_t>(i)]);
  for (int i = 0; i < indices.rank(); ++i)
    if (i != g.index_vector_dim) batch.push_back(indices.dims[static_cast<std::size_t>(i)]);
  if (window.size() != g.offset_dims.size())
    throw Error(fmt::format("gather has {} offset_dims, its slices {} dimensions", g.offset_dims.size(),
                            window.size()));
  const int rank = static_cast<int>(window.size() + batch.size());
  check_distinct(node, g.offset_dims, rank);
  Shape result = Shape::array(from.dtype, {});
  std::size_t next_window = 0, next_batch = 0;
  for (int i = 0; i < rank; ++i)
    result.dims.push_back(std::ranges::count(g.offset_dims, i) != 0 ? window[next_window++]
                                                                    : batch[next_batch++]);
  return result;
}

/// Start indices: one scalar a dimension, or (old form) one vector.
void check_starts(const Node& node, Operands operands, std::size_t first, int rank) {
  const std::size_t count = operands.size() - first;
  const bool vector = count == 1 && operands[first]->rank() == 1 && operands[first]->dims[0] == rank;
  if (!vector && static_cast<int>(count) != rank)
    throw Error(fmt::format("{} of rank {} has {} start indices", def(node.op).name, rank, count));
  for (std::size_t i = first; i < operands.size(); ++i)
    if (!is_integral(operands[i]->dtype) || (!vector && operands[i]->rank() != 0))
      throw Error(fmt::format("start index {} of {} is {}, an integer scalar is needed", i - first,
                              def(node.op).name, to_text(*operands[i])));
}

Shape dynamic_slice(const Node& node, Operands operands) {
  const Shape& from = array(node, operands, 0);
  check_starts(node, operands, 1, from.rank());
  if (node.attrs.slice_sizes.size() != from.dims.size())
    throw Error(fmt::format("dynamic-slice of {} gives {} sizes", dims_text(from.dims),
                            node.attrs.slice_sizes.size()));
  for (std::size_t i = 0; i < from.dims.size(); ++i)
    if (node.attrs.slice_sizes[i] < 0 || node.attrs.slice_sizes[i] > from.dims[i])
      throw Error(fmt::format("dynamic-slice size {} exceeds dimension {} of extent {}",
                              node.attrs.slice_sizes[i], i, from.dims[i]));
  return Shape::array(from.dtype, node.attrs.slice_sizes);
}

Shape dynamic_update_slice(const Node& node, Operands operands) {
  const Shape& from = array(node, operands, 0);
  const Shape& update = array(node, operands, 1);
  check_same_dtype(node, from, update);
  if (from.rank() != update.rank())
    throw Error(fmt::format("dynamic-update-slice of {} with an update {}", to_text(from), to_text(update)));
  for (std::size_t i = 0; i < from.dims.size(); ++i)
    if (update.dims[i] > from.dims[i])
      throw Error(
          fmt::format("the update's dimension {} of extent {} exceeds {}", i, update.dims[i], from.dims[i]));
  check_starts(node, operands, 2, from.rank());
  return plain(from);
}

Shape scatter(const Node& node, Operands operands) {
  if (operands.size() % 2 != 1)
    throw Error(fmt::format("scatter has {} operands, N + 1 + N are needed", operands.size()));
  std::vector<Shape> results;
  for (std::size_t i = 0; i < operands.size() / 2; ++i) {
    check_same_dtype(node, array(node, operands, i), array(node, operands, operands.size() / 2 + 1 + i));
    results.push_back(plain(*operands[i]));
  }
  return packed(std::move(results));
}

/// Types of a reduction's results: those of the reducer's root.
std::vector<DType> reducer_types(const Graph& graph, const Node& node, std::size_t inputs) {
  const Shape& root = root_shape(graph, node, 0);
  if (const Computation& reducer = named_computation(graph, node, 0); reducer.parameters.size() != 2 * inputs)
    throw Error(fmt::format("{} of {} inputs: reducer '{}' has {} parameters, {} are needed",
                            def(node.op).name, inputs, reducer.name, reducer.parameters.size(), 2 * inputs));
  std::vector<DType> types;
  if (root.is_tuple)
    for (const Shape& element : root.elements) types.push_back(element.dtype);
  else
    types.push_back(root.dtype);
  if (types.size() != inputs)
    throw Error(
        fmt::format("{} of {} inputs: the reducer gives {} values", def(node.op).name, inputs, types.size()));
  return types;
}

/// Inputs then as many scalar initial values, all inputs of equal dimensions.
std::size_t check_inputs_and_inits(const Node& node, Operands operands) {
  if (operands.size() % 2 != 0)
    throw Error(fmt::format("{} has {} operands, N inputs and N initial values are needed", def(node.op).name,
                            operands.size()));
  const std::size_t inputs = operands.size() / 2;
  for (std::size_t i = 0; i < inputs; ++i) {
    check_same_dims(node, array(node, operands, 0), array(node, operands, i));
    if (array(node, operands, inputs + i).rank() != 0)
      throw Error(fmt::format("initial value of {} is {}, a scalar is needed", def(node.op).name,
                              to_text(*operands[inputs + i])));
  }
  return inputs;
}

Shape reduce(const Graph& graph, const Node& node, Operands operands) {
  const std::size_t inputs = check_inputs_and_inits(node, operands);
  const Shape& from = *operands[0];
  check_distinct(node, node.attrs.dimensions, from.rank());
  std::vector<std::int64_t> dims;
  for (int i = 0; i < from.rank(); ++i)
    if (std::ranges::count(node.attrs.dimensions, i) == 0)
      dims.push_back(from.dims[static_cast<std::size_t>(i)]);
  std::vector<Shape> results;
  for (DType type : reducer_types(graph, node, inputs)) results.push_back(Shape::array(type, dims));
  return packed(std::move(results));
}

Shape reduce_window(const Graph& graph, const Node& node, Operands operands) {
  const std::size_t inputs = check_inputs_and_inits(node, operands);
  const std::vector<std::int64_t> dims = infer_window_dims(node, *operands[0]);
  std::vector<Shape> results;
  for (DType type : reducer_types(graph, node, inputs)) results.push_back(Shape::array(type, dims));
  return packed(std::move(results));
}

Shape get_tuple_element(const Node& node, const Shape& from) {
  if (!from.is_tuple)
    throw Error(fmt::format("get-tuple-element of {}, which is not a tuple", to_text(from)));
  const std::int64_t index = node.attrs.tuple_index;
  if (index < 0 || index >= static_cast<std::int64_t>(from.elements.size()))
    throw Error(fmt::format("get-tuple-element {} of a tuple of {} elements", index, from.elements.size()));
  return plain(from.elements[static_cast<std::size_t>(index)]);
}

/// call, fusion: the callee takes exactly these operands.
Shape call(const Graph& graph, const Node& node, Operands operands) {
  const Computation& callee = named_computation(graph, node, 0);
  if (callee.parameters.size() != operands.size())
    throw Error(fmt::format("{} passes {} operands, '{}' has {} parameters", def(node.op).name,
                            operands.size(), callee.name, callee.parameters.size()));
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (const Shape& wanted = callee.node(callee.parameters[i]).shape; !wanted.compatible(*operands[i]))
      throw Error(fmt::format("{} passes {} as parameter {} of '{}', which is {}", def(node.op).name,
                              to_text(*operands[i]), i, callee.name, to_text(wanted)));
  return plain(root_shape(graph, node, 0));
}

Shape loop(const Graph& graph, const Node& node, const Shape& state) {
  const Shape& condition = root_shape(graph, node, 0);
  const Shape& body = root_shape(graph, node, 1);
  if (condition.is_tuple || condition.dtype != DType::kPred || condition.rank() != 0)
    throw Error(fmt::format("the condition of while gives {}, pred[] is needed", to_text(condition)));
  if (!body.compatible(state))
    throw Error(fmt::format("the body of while gives {}, its state is {}", to_text(body), to_text(state)));
  return plain(state);
}

Shape conditional(const Graph& graph, const Node& node) {
  const Shape& first = root_shape(graph, node, 0);
  for (std::size_t i = 1; i < node.attrs.computations.size(); ++i)
    if (!root_shape(graph, node, i).compatible(first))
      throw Error(fmt::format("branches of conditional give {} and {}", to_text(first),
                              to_text(root_shape(graph, node, i))));
  return plain(first);
}

void check_arity(const Node& node, Operands operands) {
  const OpDef& row = def(node.op);
  const auto count = static_cast<int>(operands.size());
  if (count >= row.min_operands && (row.max_operands < 0 || count <= row.max_operands)) return;
  const std::string wanted = row.max_operands == row.min_operands ? fmt::format("{}", row.min_operands)
                             : row.max_operands < 0
                                 ? fmt::format("at least {}", row.min_operands)
                                 : fmt::format("{} to {}", row.min_operands, row.max_operands);
  throw Error(fmt::format("{} has {} operands, {} needed", row.name, count, wanted));
}

std::vector<Shape> copies(Operands operands) {
  std::vector<Shape> shapes;
  for (const Shape* operand : operands) shapes.push_back(plain(*operand));
  return shapes;
}

}  // namespace

Shape infer_shape(const Graph& graph, const Node& node, Operands operands) {
  check_arity(node, operands);
  const auto first = [&]() -> const Shape& { return array(node, operands, 0); };
  switch (node.op) {
    case Op::kBitcastConvert:
      return bitcast_convert(node, first());
    case Op::kCopy:
    case Op::kOptimizationBarrier:
    case Op::kAddDependency:
    case Op::kCholesky:
    case Op::kSetDimensionSize:
      return plain(*operands[0]);
    case Op::kBroadcast:
      return broadcast(node, first());
    case Op::kReshape:
      return reshape(node, first());
    case Op::kBitcast:
      return bitcast(node, first());
    case Op::kTranspose:
      return transpose(node, first());
    case Op::kSlice:
      return slice(node, first());
    case Op::kReverse:
      check_distinct(node, node.attrs.dimensions, first().rank());
      return plain(first());
    case Op::kConcatenate:
      return concatenate(node, operands);
    case Op::kPad:
      return pad(node, operands);
    case Op::kGather:
      return gather(node, operands);
    case Op::kDynamicSlice:
      return dynamic_slice(node, operands);
    case Op::kDynamicUpdateSlice:
      return dynamic_update_slice(node, operands);
    case Op::kScatter:
      return scatter(node, operands);
    case Op::kReduce:
      return reduce(graph, node, operands);
    case Op::kReduceWindow:
      return reduce_window(graph, node, operands);
    case Op::kSelectAndScatter:
      infer_window_dims(node, first());
      return plain(first());
    case Op::kDot:
      return infer_dot(node, first(), array(node, operands, 1));
    case Op::kConvolution:
      return infer_convolution(node, first(), array(node, operands, 1));
    case Op::kTriangularSolve:
      return plain(array(node, operands, 1));
    case Op::kSort:
      for (std::size_t i = 1; i < operands.size(); ++i)
        check_same_dims(node, first(), array(node, operands, i));
      return packed(copies(operands));
    case Op::kTuple:
      return Shape::tuple(copies(operands));
    case Op::kGetTupleElement:
      return get_tuple_element(node, *operands[0]);
    case Op::kCall:
    case Op::kFusion:
      return call(graph, node, operands);
    case Op::kWhile:
      return loop(graph, node, *operands[0]);
    case Op::kConditional:
      return conditional(graph, node);
    case Op::kAfterAll:
      return Shape::array(DType::kToken, {});
    case Op::kGetDimensionSize:
      return Shape::array(DType::kS32, {});
    case Op::kAllReduce:
      return node.shape.is_tuple ? Shape::tuple(copies(operands)) : plain(first());
    case Op::kIota:
      if (node.attrs.dimensions.size() != 1) throw Error("iota needs iota_dimension=D");
      check_dimension(node, node.attrs.dimensions[0], node.shape.rank());
      return plain(node.shape);
    case Op::kConstant:
      if (node.attrs.literal && !node.attrs.literal->shape.compatible(node.shape))
        throw Error(fmt::format("constant of {} is declared {}", to_text(node.attrs.literal->shape),
                                to_text(node.shape)));
      return plain(node.shape);
    default:
      break;
  }
  if (is_elementwise(node.op)) return elementwise(graph, node, operands);
  // HLO leaves the result open: parameters, random numbers, custom calls, collectives.
  return plain(node.shape);
}

}  // namespace stitchwork
