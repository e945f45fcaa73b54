#include "analysis/facts/facts.h"

#include <algorithm>

#include "analysis/facts/operand_index.h"
#include "core/base/error.h"

namespace stitchwork {

PlanRole plan_role(const Node& node) {
  const OpDef& row = def(node.op);
  switch (row.execution) {
    case Execution::kNone:
      return node.op == Op::kParameter || node.op == Op::kConstant ? PlanRole::kSource : PlanRole::kAlias;
    case Execution::kGenerated:
      // Variadic reductions and the like give several arrays; generated code stores one an op.
      return node.shape.is_tuple ? PlanRole::kOpaque : PlanRole::kMemory;
    case Execution::kLibrary:
      return PlanRole::kLibrary;
    case Execution::kControl:
    case Execution::kOpaque:
      return PlanRole::kOpaque;
  }
  SW_CHECK(false, "execution of {}", row.name);
}

bool is_product(const Node& node) {
  return node.op == Op::kDot && !node.shape.is_tuple && is_executable(node.shape.dtype) &&
         node.shape.dtype != DType::kPred;
}

bool is_for_kernels(const Node& node) {
  const PlanRole role = plan_role(node);
  return role == PlanRole::kMemory || role == PlanRole::kAlias || is_product(node);
}

bool is_index_map(const Node& node) {
  const PlanRole role = plan_role(node);
  if (role == PlanRole::kAlias) return node.operands.size() == 1;
  return role == PlanRole::kMemory && (node.op == Op::kBroadcast || node.op == Op::kSlice ||
                                       node.op == Op::kReshape || node.op == Op::kBitcast);
}

bool is_reduction(const Node& node) { return def(node.op).cls == OpClass::kReduce || is_product(node); }

int reduced_operands(const Node& node) { return is_product(node) ? 2 : 1; }

NodeId initial_value(const Node& node) { return is_product(node) ? kNoNode : node.operands.at(1); }

std::optional<Op> reducer_of(const Graph& graph, const Node& node) {
  return is_product(node) ? Op::kAdd : simple_reducer(graph, applied(node));
}

bool adds_atomically(const Graph& graph, const Node& node) {
  const Computation& computation = graph.entry_computation();
  if (node.operands.size() != 2 || node.attrs.computations.empty()) return false;
  if (simple_reducer(graph, applied(node)) != Op::kAdd) return false;
  switch (node.shape.dtype) {
    case DType::kF32:
    case DType::kF64:
    case DType::kS32:
    case DType::kU32:
    case DType::kU64:
      break;
    default:
      return false;
  }
  const Node& init = computation.node(node.operands[1]);
  return init.op == Op::kConstant && init.attrs.literal && init.attrs.literal->get_double(0) == 0;
}

bool is_immediate(const Computation& computation, NodeId node) {
  for (;;) {
    const Node& n = computation.node(node);
    if (n.op == Op::kConstant) return !n.shape.is_tuple && n.shape.elements_count() == 1;
    const bool passes = n.op == Op::kBroadcast || n.op == Op::kReshape || n.op == Op::kBitcast;
    if (!passes || n.operands.size() != 1) return false;
    node = n.operands[0];
  }
}

namespace {

/// By dimension of a reduced operand.
std::vector<bool> reduced_dimensions(const Computation& computation, const Node& node, int operand) {
  SW_CHECK(is_reduction(node) && !node.operands.empty(), "{} is no reduction", node.name);
  const NodeId read = node.operands[static_cast<std::size_t>(operand)];
  std::vector<bool> reduced(computation.node(read).shape.dims.size(), false);
  const DotDims dot = node.attrs.dot.value_or(DotDims{});
  const std::vector<std::int64_t>& dims = !is_product(node) ? node.attrs.dimensions
                                          : operand == 0    ? dot.lhs_contracting
                                                            : dot.rhs_contracting;
  for (std::int64_t d : dims) reduced.at(static_cast<std::size_t>(d)) = true;
  return reduced;
}

/// Whether the minor-most dimension of extent > 1 is reduced; of scalars none is not.
bool reduces_minor(const std::vector<std::int64_t>& extents, const std::vector<bool>& reduced) {
  for (std::size_t d = extents.size(); d-- > 0;)
    if (extents[d] > 1) return reduced[d];
  return true;
}

}  // namespace

ReductionSize reduction_size(const Computation& computation, NodeId reduce) {
  const Node& node = computation.node(reduce);
  ReductionSize result;
  for (int operand = 0; operand < reduced_operands(node); ++operand) {
    const std::vector<bool> reduced = reduced_dimensions(computation, node, operand);
    const std::vector<std::int64_t>& extents =
        computation.node(node.operands[static_cast<std::size_t>(operand)]).shape.dims;
    result.rows = result.cols = 1;
    for (std::size_t d = 0; d < extents.size(); ++d) (reduced[d] ? result.cols : result.rows) *= extents[d];
    result.row_reduce = result.row_reduce && reduces_minor(extents, reduced);
  }
  if (is_product(node)) result.rows = node.shape.elements_count();
  return result;
}

ReductionShape reduction_shape(const Computation& computation, NodeId reduce) {
  const Node& node = computation.node(reduce);
  ReductionShape result{reduction_size(computation, reduce), {}, {}};
  result.input_map.dims = result.output_map.dims = {result.rows, result.cols};
  if (is_product(node)) {
    result.output_map.results = delinearize(IndexExpr::dim(0), node.shape.dims);
    result.output_map = simplify(std::move(result.output_map));
    result.input_map = reduced_operand_map(computation, node, 0, result.output_map);
    return result;
  }
  const std::vector<bool> reduced = reduced_dimensions(computation, node, 0);
  const std::vector<std::int64_t>& extents = computation.node(node.operands[0]).shape.dims;
  std::vector<std::int64_t> kept_extents, reduced_extents;
  for (std::size_t d = 0; d < extents.size(); ++d)
    (reduced[d] ? reduced_extents : kept_extents).push_back(extents[d]);
  const std::vector<IndexExpr> kept_index = delinearize(IndexExpr::dim(0), kept_extents);
  const std::vector<IndexExpr> reduced_index = delinearize(IndexExpr::dim(1), reduced_extents);

  result.output_map.results = kept_index;
  std::size_t k = 0, r = 0;
  for (std::size_t d = 0; d < extents.size(); ++d)
    result.input_map.results.push_back(reduced[d] ? reduced_index[r++] : kept_index[k++]);
  result.input_map = simplify(std::move(result.input_map));
  result.output_map = simplify(std::move(result.output_map));
  return result;
}

}  // namespace stitchwork
