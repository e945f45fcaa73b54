#include <algorithm>

#include "core/base/error.h"
#include "core/graph/infer_checks.h"
#include "core/graph/infer_families.h"
#include "core/graph/window.h"

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

/// Dimensions of slices that the result lacks hold one element; batching dimensions come in pairs.
void check_gather_batching(const GatherDims& g, const Shape& from, const Shape& indices) {
  for (const auto* dropped : {&g.collapsed_slice_dims, &g.operand_batching_dims})
    for (const std::int64_t dim : *dropped)
      if (g.slice_sizes[static_cast<std::size_t>(dim)] > 1)
        throw Error(fmt::format("gather's slice size {} in dimension {}, which its result lacks, is not 1",
                                g.slice_sizes[static_cast<std::size_t>(dim)], dim));
  bool fits = g.operand_batching_dims.size() == g.start_indices_batching_dims.size();
  for (std::size_t i = 0; fits && i < g.operand_batching_dims.size(); ++i) {
    const std::int64_t at = g.start_indices_batching_dims[i];
    fits = at != g.index_vector_dim && from.dims[static_cast<std::size_t>(g.operand_batching_dims[i])] ==
                                           indices.dims[static_cast<std::size_t>(at)];
  }
  if (!fits) throw Error("gather's batching dimensions of operand and indices do not match");
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
  check_gather_batching(g, from, indices);
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

namespace {

/// Which dimensions the lists name, and that a window dimension of the update fits the operand's.
void check_scatter_window(const Node& node, const ScatterDims& s, const Shape& from, const Shape& update) {
  check_distinct(node, s.update_window, update.rank());
  check_distinct(node, s.to_operand, from.rank());
  std::vector<std::int64_t> dropped = s.inserted_window;
  dropped.insert(dropped.end(), s.input_batching.begin(), s.input_batching.end());
  check_distinct(node, dropped, from.rank());
  if (s.update_window.size() + dropped.size() != from.dims.size())
    throw Error(
        fmt::format("scatter into {} has {} update_window_dims, {} inserted and {} batching dimensions",
                    dims_text(from.dims), s.update_window.size(), s.inserted_window.size(),
                    s.input_batching.size()),
        "together they are the operand's dimensions");
  if (!std::ranges::is_sorted(s.update_window)) throw Error("scatter's update_window_dims are not in order");
  std::size_t next = 0;
  for (int i = 0; i < from.rank(); ++i) {
    if (std::ranges::count(dropped, i) != 0) continue;
    const std::int64_t extent = update.dims[static_cast<std::size_t>(s.update_window[next++])];
    if (extent > from.dims[static_cast<std::size_t>(i)])
      throw Error(fmt::format("the update's window extent {} exceeds dimension {} of {}", extent, i,
                              dims_text(from.dims)));
  }
}

/// The update has a dimension for every one of the indices but that of their vectors.
void check_scatter_batch(const Node& node, const ScatterDims& s, const Shape& from, const Shape& indices,
                         const Shape& update) {
  if (s.index_vector_dim < 0 || s.index_vector_dim > indices.rank())
    throw Error(fmt::format("scatter's index_vector_dim {} is outside indices of rank {}", s.index_vector_dim,
                            indices.rank()));
  const std::int64_t length =
      s.index_vector_dim == indices.rank() ? 1 : indices.dims[static_cast<std::size_t>(s.index_vector_dim)];
  if (static_cast<std::int64_t>(s.to_operand.size()) != length)
    throw Error(fmt::format("scatter's scatter_dims_to_operand_dims has {} entries, an index vector {}",
                            s.to_operand.size(), length));
  std::vector<std::int64_t> batch, wanted;
  for (int i = 0; i < update.rank(); ++i)
    if (std::ranges::count(s.update_window, i) == 0)
      batch.push_back(update.dims[static_cast<std::size_t>(i)]);
  for (int i = 0; i < indices.rank(); ++i)
    if (i != s.index_vector_dim) wanted.push_back(indices.dims[static_cast<std::size_t>(i)]);
  if (batch != wanted)
    throw Error(
        fmt::format("the dimensions {} of scatter's update outside its windows are not those {} of its "
                    "indices",
                    dims_text(batch), dims_text(wanted)));
  check_distinct(node, s.indices_batching, indices.rank());
  const bool fits = s.indices_batching.size() == s.input_batching.size() &&
                    std::ranges::count(s.indices_batching, s.index_vector_dim) == 0;
  for (std::size_t i = 0; i < s.input_batching.size(); ++i)
    if (!fits || from.dims[static_cast<std::size_t>(s.input_batching[i])] !=
                     indices.dims[static_cast<std::size_t>(s.indices_batching[i])])
      throw Error("scatter's batching dimensions of operand and indices do not match");
}

}  // namespace

Shape infer_scatter(const Node& node, Operands operands) {
  if (operands.size() % 2 != 1)
    throw Error(fmt::format("scatter has {} operands, N + 1 + N are needed", operands.size()));
  const std::size_t inputs = operands.size() / 2;
  const Shape& from = array(node, operands, 0);
  const Shape& indices = array(node, operands, inputs);
  const Shape& update = array(node, operands, inputs + 1);
  if (!is_integral(indices.dtype)) throw Error(fmt::format("scatter's indices are {}", name(indices.dtype)));
  const ScatterDims dims = scatter_dims(node);
  check_scatter_window(node, dims, from, update);
  check_scatter_batch(node, dims, from, indices, update);
  std::vector<Shape> results;
  for (std::size_t i = 0; i < inputs; ++i) {
    check_same_dims(node, from, array(node, operands, i));
    check_same_dims(node, update, array(node, operands, inputs + 1 + i));
    check_same_dtype(node, array(node, operands, i), array(node, operands, inputs + 1 + i));
    results.push_back(plain(*operands[i]));
  }
  return packed(std::move(results));
}

}  // namespace stitchwork
