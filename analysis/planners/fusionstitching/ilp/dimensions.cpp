#include "analysis/planners/fusionstitching/ilp/dimensions.h"

namespace stitchwork::fusionstitching {
namespace {

std::int64_t product(const ScheduledDims& dims, bool reduced) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < dims.extents.size(); ++d)
    if (dims.reduced[d] == reduced) elements *= dims.extents[d];
  return elements;
}

}  // namespace

std::int64_t ScheduledDims::kept() const { return product(*this, false); }
std::int64_t ScheduledDims::reduces() const { return product(*this, true); }

ScheduledDims scheduled_dims(const Computation& computation, const Node& node, std::size_t attributes) {
  ScheduledDims dims;
  bool reduces = false;
  if (def(node.op).cls == OpClass::kReduce) {
    reduces = true;
    dims.extents = computation.node(node.operands[0]).shape.dims;
    dims.reduced.assign(dims.extents.size(), false);
    for (const std::int64_t d : node.attrs.dimensions) dims.reduced.at(static_cast<std::size_t>(d)) = true;
  } else {
    dims.extents = node.shape.dims;
    dims.reduced.assign(dims.extents.size(), false);
    if (node.op == Op::kDot && node.attrs.dot) {
      reduces = true;
      const auto& operand = computation.node(node.operands[0]).shape.dims;
      for (const std::int64_t d : node.attrs.dot->lhs_contracting) {
        dims.extents.push_back(operand.at(static_cast<std::size_t>(d)));
        dims.reduced.push_back(true);
      }
    }
  }
  if (attributes == dims.extents.size()) return dims;
  if (!reduces && attributes == 1) return {{dims.kept()}, {false}};
  if (reduces && attributes == 2) return {{dims.kept(), dims.reduces()}, {false, true}};
  return dims;
}

}  // namespace stitchwork::fusionstitching
