#include <algorithm>

#include "core/error.h"
#include "core/infer_checks.h"
#include "core/infer_families.h"

namespace stitchwork {

using namespace infer;

namespace {

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

}  // namespace

Shape infer_gather(const Node& node, Operands operands) {
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

Shape infer_dynamic_slice(const Node& node, Operands operands) {
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

Shape infer_dynamic_update_slice(const Node& node, Operands operands) {
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

Shape infer_scatter(const Node& node, Operands operands) {
  if (operands.size() % 2 != 1)
    throw Error(fmt::format("scatter has {} operands, N + 1 + N are needed", operands.size()));
  std::vector<Shape> results;
  for (std::size_t i = 0; i < operands.size() / 2; ++i) {
    check_same_dtype(node, array(node, operands, i), array(node, operands, operands.size() / 2 + 1 + i));
    results.push_back(plain(*operands[i]));
  }
  return packed(std::move(results));
}

}  // namespace stitchwork
