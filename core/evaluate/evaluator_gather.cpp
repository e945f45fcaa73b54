// Ops whose indices are values. Start indices are clamped so that the slice stays inside, as HLO defines.
#include <algorithm>

#include "core/evaluate/evaluator_ops.h"
#include "core/evaluate/move_box.h"
#include "core/graph/dtype_dispatch.h"
#include "core/index/strided.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

/// Start of a slice of `sizes` in `extents`: scalars from operands[first], or one vector.
Dims clamped_starts(Values operands, std::size_t first, const Dims& extents, const Dims& sizes) {
  const bool vector = operands.size() > first && operands[first]->shape.rank() == 1;
  Dims starts;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t start =
        vector ? operands[first]->get_int(static_cast<std::int64_t>(i)) : operands[first + i]->get_int(0);
    starts.push_back(std::clamp<std::int64_t>(start, 0, extents[i] - sizes[i]));
  }
  return starts;
}

std::int64_t dot(const Dims& a, const Dims& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

Literal evaluate_dynamic_slice(const Node& node, Values operands) {
  const Literal& from = *operands[0];
  Literal result = Literal::zeros(node.shape);
  const Dims from_strides = strides_of(from.shape.dims);
  const Dims starts = clamped_starts(operands, 1, from.shape.dims, node.attrs.slice_sizes);
  move_box({node.shape.dims, {strides_of(node.shape.dims), from_strides}, {0, dot(starts, from_strides)}},
           result, from);
  return result;
}

Literal evaluate_dynamic_update_slice(const Node&, Values operands) {
  Literal result = *operands[0];
  const Literal& update = *operands[1];
  const Dims strides = strides_of(result.shape.dims);
  const Dims starts = clamped_starts(operands, 2, result.shape.dims, update.shape.dims);
  move_box({update.shape.dims, {strides, strides_of(update.shape.dims)}, {dot(starts, strides), 0}}, result,
           update);
  return result;
}

Literal evaluate_gather(const Node& node, Values operands) {
  const GatherDims& g = *node.attrs.gather;
  const Literal& from = *operands[0];
  const Literal& indices = *operands[1];
  Literal result = Literal::zeros(node.shape);
  const Dims from_strides = strides_of(from.shape.dims), result_strides = strides_of(result.shape.dims);
  Dims index_strides = strides_of(indices.shape.dims);
  index_strides.push_back(0);  // index_vector_dim may be the rank: vectors of one element

  // The slice: its dims are those of the operand that are neither collapsed nor batching, in order.
  StridedBox<2> slice;
  std::size_t next_offset = 0;
  for (int d = 0; d < from.shape.rank(); ++d) {
    if (std::ranges::count(g.collapsed_slice_dims, d) + std::ranges::count(g.operand_batching_dims, d) != 0)
      continue;
    slice.dims.push_back(g.slice_sizes[static_cast<std::size_t>(d)]);
    slice.strides[0].push_back(result_strides[static_cast<std::size_t>(g.offset_dims[next_offset++])]);
    slice.strides[1].push_back(from_strides[static_cast<std::size_t>(d)]);
  }
  // The batch: indices' dims but the vector's, on the result's dims that are not offset_dims.
  StridedBox<2> batch;  // array 0 the result, array 1 the indices
  std::vector<int> batch_of_index_dim(indices.shape.dims.size(), -1);
  for (int d = 0, out = 0; d < indices.shape.rank(); ++d) {
    if (d == g.index_vector_dim) continue;
    while (std::ranges::count(g.offset_dims, out) != 0) ++out;
    batch_of_index_dim[static_cast<std::size_t>(d)] = static_cast<int>(batch.dims.size());
    batch.dims.push_back(indices.shape.dims[static_cast<std::size_t>(d)]);
    batch.strides[0].push_back(result_strides[static_cast<std::size_t>(out++)]);
    batch.strides[1].push_back(index_strides[static_cast<std::size_t>(d)]);
  }
  if (result.shape.elements_count() == 0) return result;

  const std::int64_t vector_stride = index_strides[static_cast<std::size_t>(g.index_vector_dim)];
  Dims at(batch.dims.size(), 0);
  for (;;) {
    const std::int64_t first = dot(at, batch.strides[1]);
    slice.offset = {dot(at, batch.strides[0]), 0};
    for (std::size_t i = 0; i < g.start_index_map.size(); ++i) {
      const auto d = static_cast<std::size_t>(g.start_index_map[i]);
      const std::int64_t start = indices.get_int(first + static_cast<std::int64_t>(i) * vector_stride);
      slice.offset[1] +=
          std::clamp<std::int64_t>(start, 0, from.shape.dims[d] - g.slice_sizes[d]) * from_strides[d];
    }
    for (std::size_t i = 0; i < g.operand_batching_dims.size(); ++i) {
      const int b = batch_of_index_dim[static_cast<std::size_t>(g.start_indices_batching_dims[i])];
      slice.offset[1] += at[static_cast<std::size_t>(b)] *
                         from_strides[static_cast<std::size_t>(g.operand_batching_dims[i])];
    }
    move_box(slice, result, from);
    std::size_t d = at.size();
    while (d > 0 && ++at[d - 1] == batch.dims[d - 1]) at[--d] = 0;
    if (d == 0) break;
  }
  return result;
}

}  // namespace stitchwork
