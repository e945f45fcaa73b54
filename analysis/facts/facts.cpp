#include "analysis/facts/facts.h"

#include <algorithm>

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

/// By dimension of the operand.
std::vector<bool> reduced_dimensions(const Computation& computation, NodeId reduce) {
  const Node& node = computation.node(reduce);
  SW_CHECK(def(node.op).cls == OpClass::kReduce && !node.operands.empty(), "{} is no reduction", node.name);
  std::vector<bool> reduced(computation.node(node.operands[0]).shape.dims.size(), false);
  for (std::int64_t d : node.attrs.dimensions) reduced.at(static_cast<std::size_t>(d)) = true;
  return reduced;
}

}  // namespace

ReductionSize reduction_size(const Computation& computation, NodeId reduce) {
  const std::vector<bool> reduced = reduced_dimensions(computation, reduce);
  const std::vector<std::int64_t>& extents =
      computation.node(computation.node(reduce).operands[0]).shape.dims;
  ReductionSize result;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    (reduced[d] ? result.cols : result.rows) *= extents[d];
    if (extents[d] > 1) result.row_reduce = reduced[d];
  }
  return result;
}

ReductionShape reduction_shape(const Computation& computation, NodeId reduce) {
  const std::vector<bool> reduced = reduced_dimensions(computation, reduce);
  const std::vector<std::int64_t>& extents =
      computation.node(computation.node(reduce).operands[0]).shape.dims;
  ReductionShape result{reduction_size(computation, reduce), {}, {}};
  std::vector<std::int64_t> kept_extents, reduced_extents;
  for (std::size_t d = 0; d < extents.size(); ++d)
    (reduced[d] ? reduced_extents : kept_extents).push_back(extents[d]);
  const std::vector<IndexExpr> kept_index = delinearize(IndexExpr::dim(0), kept_extents);
  const std::vector<IndexExpr> reduced_index = delinearize(IndexExpr::dim(1), reduced_extents);

  result.input_map.dims = result.output_map.dims = {result.rows, result.cols};
  result.output_map.results = kept_index;
  std::size_t k = 0, r = 0;
  for (std::size_t d = 0; d < extents.size(); ++d)
    result.input_map.results.push_back(reduced[d] ? reduced_index[r++] : kept_index[k++]);
  result.input_map = simplify(std::move(result.input_map));
  result.output_map = simplify(std::move(result.output_map));
  return result;
}

}  // namespace stitchwork
