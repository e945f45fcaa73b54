// Shape inference: what HLO semantics give an op for its operands' shapes.
#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/graph/complex_type.h"
#include "core/graph/float_semantics.h"
#include "core/graph/graph.h"
#include "core/graph/infer_checks.h"
#include "core/graph/infer_families.h"
#include "core/graph/op.h"
#include "core/graph/window.h"

namespace stitchwork {

using namespace infer;

namespace {

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
    case Op::kReducePrecision:
      reduced_precision(node);
      break;
    case Op::kReal:
    case Op::kImag:
    case Op::kAbs:
      type = part_of(type);
      break;
    case Op::kComplex:
      if (type != DType::kF32 && type != DType::kF64)
        throw Error(fmt::format("complex does not take {}", name(type)), "f32 and f64 have complex types");
      type = complex_of(type);
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

/// Types of a reduction's results: those of the reducer's root.
std::vector<DType> reducer_types(const Graph& graph, const Node& node) {
  const Shape& root = root_shape(graph, node, 0);
  if (!root.is_tuple) return {root.dtype};
  std::vector<DType> types;
  for (const Shape& element : root.elements) types.push_back(element.dtype);
  return types;
}

/// Inputs then as many scalar initial values, all inputs of equal dimensions.
void check_inputs_and_inits(const Node& node, Operands operands) {
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
}

Shape reduce(const Graph& graph, const Node& node, Operands operands) {
  const Shape& from = *operands[0];
  check_distinct(node, node.attrs.dimensions, from.rank());
  std::vector<std::int64_t> dims;
  for (int i = 0; i < from.rank(); ++i)
    if (std::ranges::count(node.attrs.dimensions, i) == 0)
      dims.push_back(from.dims[static_cast<std::size_t>(i)]);
  std::vector<Shape> results;
  for (DType type : reducer_types(graph, node)) results.push_back(Shape::array(type, dims));
  return packed(std::move(results));
}

Shape reduce_window(const Graph& graph, const Node& node, Operands operands) {
  const std::vector<std::int64_t> dims = infer_window_dims(node, *operands[0]);
  std::vector<Shape> results;
  for (DType type : reducer_types(graph, node)) results.push_back(Shape::array(type, dims));
  return packed(std::move(results));
}

/// The source has an element for every window of the operand.
void check_select_and_scatter(const Node& node, Operands operands) {
  const Shape &from = array(node, operands, 0), &source = array(node, operands, 1);
  const Shape wanted = Shape::array(from.dtype, infer_window_dims(node, from));
  if (!source.compatible(wanted))
    throw Error(fmt::format("the source of select-and-scatter is {}, its windows give {}", to_text(source),
                            to_text(wanted)));
  if (const Shape& init = array(node, operands, 2); !init.compatible(Shape::array(from.dtype, {})))
    throw Error(fmt::format("initial value of select-and-scatter is {}, {} is needed", to_text(init),
                            to_text(Shape::array(from.dtype, {}))));
}

Shape get_tuple_element(const Node& node, const Shape& from) {
  if (!from.is_tuple)
    throw Error(fmt::format("get-tuple-element of {}, which is not a tuple", to_text(from)));
  const std::int64_t index = node.attrs.tuple_index;
  if (index < 0 || index >= static_cast<std::int64_t>(from.elements.size()))
    throw Error(fmt::format("get-tuple-element {} of a tuple of {} elements", index, from.elements.size()));
  return plain(from.elements[static_cast<std::size_t>(index)]);
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

/// What starts an op gives a tuple that ends in things of the device: which element is the op's result.
Shape async_start(const Graph& graph, const Node& node, std::size_t result) {
  if (!node.shape.is_tuple || node.shape.elements.size() <= result)
    throw Error(fmt::format("{} gives {}, a tuple of operands and result is needed", def(node.op).name,
                            to_text(node.shape)));
  if (node.op == Op::kAsyncStart && !root_shape(graph, node, 0).compatible(node.shape.elements[result]))
    throw Error(fmt::format("async-start gives {} as its result, its computation {}",
                            to_text(node.shape.elements[result]), to_text(root_shape(graph, node, 0))));
  return plain(node.shape);
}

Shape async_done(const Node& node, const Shape& started, std::size_t result) {
  if (!started.is_tuple || started.elements.size() <= result)
    throw Error(fmt::format("{} waits for {}, which nothing starts", def(node.op).name, to_text(started)),
                "its operand is the op that starts it");
  return plain(started.elements[result]);
}

Shape batch_norm(const Node& node, Operands operands) {
  const Shape& from = array(node, operands, 0);
  if (!is_floating(from.dtype))
    throw Error(fmt::format("{} does not take {}", def(node.op).name, name(from.dtype)));
  other_number(node, "epsilon", 0);  // it is a number
  const std::int64_t feature = other_integer(node, "feature_index", -1);
  check_dimension(node, feature, from.rank());
  const Shape per_feature = Shape::array(from.dtype, {from.dims[static_cast<std::size_t>(feature)]});
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const bool as_input = node.op == Op::kBatchNormGrad && i == 4;
    const Shape& wanted = as_input ? from : per_feature;
    if (!array(node, operands, i).compatible(wanted))
      throw Error(fmt::format("operand {} of {} is {}, {} is needed", i, def(node.op).name,
                              to_text(*operands[i]), to_text(wanted)));
  }
  if (node.op == Op::kBatchNormInference) return plain(from);
  return Shape::tuple({plain(from), per_feature, per_feature});
}

/// Of what calls, branches, groups values or waits; none of other ops.
std::optional<Shape> infer_control(const Graph& graph, const Node& node, Operands operands) {
  switch (node.op) {
    case Op::kTuple:
      return Shape::tuple(copies(operands));
    case Op::kGetTupleElement:
      return get_tuple_element(node, *operands[0]);
    case Op::kCall:
    case Op::kFusion:
      return plain(root_shape(graph, node, 0));
    case Op::kWhile:
      return loop(graph, node, *operands[0]);
    case Op::kConditional:
      return conditional(graph, node);
    case Op::kAfterAll:
      return Shape::array(DType::kToken, {});
    case Op::kAsyncStart:
    case Op::kAllGatherStart:
    case Op::kCollectivePermuteStart:
      return async_start(graph, node, 1);
    case Op::kCopyStart:
      return async_start(graph, node, 0);
    case Op::kAsyncDone:
    case Op::kAllGatherDone:
    case Op::kCollectivePermuteDone:
      return async_done(node, *operands[0], 1);
    case Op::kCopyDone:
      return async_done(node, *operands[0], 0);
    case Op::kAllReduceStart:
    case Op::kAllReduce:
      return node.shape.is_tuple ? Shape::tuple(copies(operands)) : plain(array(node, operands, 0));
    default:
      return std::nullopt;
  }
}

}  // namespace

Shape infer_shape(const Graph& graph, const Node& node, Operands operands) {
  check_arity(node, operands);
  if (node.op == Op::kReduce || node.op == Op::kReduceWindow) check_inputs_and_inits(node, operands);
  check_callees(graph, node, operands);
  const auto first = [&]() -> const Shape& { return array(node, operands, 0); };
  switch (node.op) {
    case Op::kBitcastConvert:
      return infer_bitcast_convert(node, first());
    case Op::kSetDimensionSize:
      check_one_dimension(node, first().rank());
      return plain(first());
    case Op::kCopy:
    case Op::kOptimizationBarrier:
    case Op::kAddDependency:
    case Op::kUpdateInPlace:
    case Op::kCholesky:
    case Op::kDomain:
    case Op::kAsyncUpdate:
    case Op::kAllReduceDone:
      return plain(*operands[0]);
    case Op::kBroadcast:
      return infer_broadcast(node, first());
    case Op::kReshape:
      return infer_reshape(node, first());
    case Op::kBitcast:
      return infer_bitcast(node, first());
    case Op::kTranspose:
      return infer_transpose(node, first());
    case Op::kSlice:
      return infer_slice(node, first());
    case Op::kReverse:
      check_distinct(node, node.attrs.dimensions, first().rank());
      return plain(first());
    case Op::kConcatenate:
    case Op::kConcatInPlace:
      return infer_concatenate(node, operands);
    case Op::kPad:
      return infer_pad(node, operands);
    case Op::kGather:
      return infer_gather(node, operands);
    case Op::kDynamicSlice:
      return infer_dynamic_slice(node, operands);
    case Op::kDynamicUpdateSlice:
      return infer_dynamic_update_slice(node, operands);
    case Op::kScatter:
      return infer_scatter(node, operands);
    case Op::kReduce:
      return reduce(graph, node, operands);
    case Op::kReduceWindow:
      return reduce_window(graph, node, operands);
    case Op::kSelectAndScatter:
      check_select_and_scatter(node, operands);
      return plain(first());
    case Op::kDot:
      return infer_dot(node, first(), array(node, operands, 1));
    case Op::kConvolution:
      return infer_convolution(node, first(), array(node, operands, 1));
    case Op::kFft:
      return infer_fft(node, first());
    case Op::kTriangularSolve:
      return plain(array(node, operands, 1));
    case Op::kSort:
      check_one_dimension(node, first().rank());
      for (std::size_t i = 1; i < operands.size(); ++i)
        check_same_dims(node, first(), array(node, operands, i));
      return packed(copies(operands));
    case Op::kGetDimensionSize:
      check_one_dimension(node, first().rank());
      return Shape::array(DType::kS32, {});
    case Op::kBatchNormTraining:
    case Op::kBatchNormInference:
    case Op::kBatchNormGrad:
      return batch_norm(node, operands);
    case Op::kIota:
      check_one_dimension(node, node.shape.rank());
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
  if (std::optional<Shape> control = infer_control(graph, node, operands)) return *std::move(control);
  // HLO leaves the result open: parameters, random numbers, custom calls, collectives.
  return plain(node.shape);
}

}  // namespace stitchwork
