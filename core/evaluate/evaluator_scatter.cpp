// Scatter: updates are combined into the operand in row-major order of the update's elements; slices that do
// not lie inside are skipped, as HLO defines.
#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/evaluate/accumulator.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/evaluate/scalar_ops.h"
#include "core/graph/dtype_dispatch.h"
#include "core/graph/window.h"
#include "core/index/strided.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

bool holds_dim(const Dims& dims, std::int64_t dim) { return std::ranges::count(dims, dim) != 0; }

/// For every update element (row-major) the operand element it goes to, -1 if its slice is not inside.
std::vector<std::int64_t> targets(const Node& node, const Shape& operand, const Literal& indices,
                                  const Shape& update) {
  const ScatterDims dims = scatter_dims(node);
  const Dims operand_strides = strides_of(operand.dims);
  Dims index_strides = strides_of(indices.shape.dims);
  index_strides.push_back(0);
  // Operand dim of every window dim of the update; index dim of every other dim of the update.
  Dims window_operand_dim, batch_index_dim;
  for (int d = 0; d < operand.rank(); ++d)
    if (!holds_dim(dims.inserted_window, d) && !holds_dim(dims.input_batching, d))
      window_operand_dim.push_back(d);
  for (int d = 0; d < indices.shape.rank(); ++d)
    if (d != dims.index_vector_dim) batch_index_dim.push_back(d);
  Dims window_size(operand.dims.size(), 1);
  for (std::size_t i = 0; i < dims.update_window.size(); ++i)
    window_size.at(static_cast<std::size_t>(window_operand_dim[i])) =
        update.dims.at(static_cast<std::size_t>(dims.update_window[i]));

  std::vector<std::int64_t> result(static_cast<std::size_t>(update.elements_count()), -1);
  Dims at(update.dims.size(), 0);
  std::size_t element = 0;
  if (result.empty()) return result;
  do {
    Dims start(operand.dims.size(), 0), inside(operand.dims.size(), 0);
    std::int64_t index_offset = 0;
    std::size_t next_window = 0, next_batch = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (holds_dim(dims.update_window, static_cast<std::int64_t>(d))) {
        inside[static_cast<std::size_t>(window_operand_dim[next_window++])] = at[d];
        continue;
      }
      const std::int64_t index_dim = batch_index_dim[next_batch++];
      index_offset += at[d] * index_strides[static_cast<std::size_t>(index_dim)];
      for (std::size_t b = 0; b < dims.indices_batching.size(); ++b)
        if (dims.indices_batching[b] == index_dim)
          start[static_cast<std::size_t>(dims.input_batching[b])] = at[d];
    }
    for (std::size_t i = 0; i < dims.to_operand.size(); ++i)
      start.at(static_cast<std::size_t>(dims.to_operand[i])) = indices.get_int(
          index_offset +
          static_cast<std::int64_t>(i) * index_strides.at(static_cast<std::size_t>(dims.index_vector_dim)));
    bool fits = true;
    std::int64_t target = 0;
    for (std::size_t d = 0; d < start.size(); ++d) {
      fits = fits && start[d] >= 0 && start[d] + window_size[d] <= operand.dims[d];
      target += (start[d] + inside[d]) * operand_strides[d];
    }
    if (fits) result[element] = target;
    ++element;
  } while (advance(at, update.dims));
  return result;
}

/// Floats are summed in float64 and rounded once.
Literal scatter_simply(Op op, const Literal& operand, const Literal& update,
                       const std::vector<std::int64_t>& target) {
  Literal result = operand;
  with_storage(operand.shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    using T = typename S::Value;
    auto* out = result.data<typename S::Stored>();
    const auto* in = update.data<typename S::Stored>();
    if constexpr (std::is_floating_point_v<T>) {
      std::vector<Accumulator<T>> totals;
      for (std::int64_t i = 0, n = operand.shape.elements_count(); i < n; ++i)
        totals.emplace_back(S::widen(out[i]));
      for (std::size_t i = 0; i < target.size(); ++i)
        if (target[i] >= 0) totals[static_cast<std::size_t>(target[i])].fold(op, S::widen(in[i]));
      for (std::size_t i = 0; i < totals.size(); ++i) out[i] = S::narrow(totals[i].value());
    } else {
      for (std::size_t i = 0; i < target.size(); ++i)
        if (target[i] >= 0)
          out[target[i]] = S::narrow(combine<T>(op, S::widen(out[target[i]]), S::widen(in[i])));
    }
  });
  return result;
}

void copy_element(const Literal& from, std::int64_t i, Literal& to, std::int64_t j) {
  const auto width = static_cast<std::ptrdiff_t>(byte_size(from.shape.dtype));
  std::copy_n(from.bytes.begin() + i * width, width, to.bytes.begin() + j * width);
}

Literal scatter_generally(const Graph& graph, const Node& node, Values operands,
                          const std::vector<std::int64_t>& target) {
  const std::size_t count = operands.size() / 2;
  std::vector<Literal> results;
  for (std::size_t i = 0; i < count; ++i) results.push_back(*operands[i]);
  for (std::size_t e = 0; e < target.size(); ++e) {
    if (target[e] < 0) continue;
    std::vector<Literal> values;
    for (std::size_t i = 0; i < 2 * count; ++i) {
      const bool old = i < count;
      const Literal& from = old ? results[i] : *operands[i + 1];
      values.push_back(Literal::zeros(Shape::array(from.shape.dtype, {1})));
      copy_element(from, old ? target[e] : static_cast<std::int64_t>(e), values.back(), 0);
    }
    std::vector<const Literal*> arguments;
    for (const Literal& value : values) arguments.push_back(&value);
    const std::vector<Literal> combined = apply_to_vectors(graph, applied(node), arguments, 1);
    for (std::size_t i = 0; i < count; ++i) copy_element(combined[i], 0, results[i], target[e]);
  }
  if (count == 1) return std::move(results[0]);
  Literal tuple;
  tuple.shape = node.shape;
  tuple.elements = std::move(results);
  return tuple;
}

}  // namespace

Literal evaluate_scatter(const Graph& graph, const Node& node, Values operands) {
  const std::size_t count = operands.size() / 2;
  const std::vector<std::int64_t> target =
      targets(node, operands[0]->shape, *operands[count], operands[count + 1]->shape);
  const std::optional<Op> op = simple_reducer(graph, applied(node));
  if (op && count == 1) return scatter_simply(*op, *operands[0], *operands[2], target);
  return scatter_generally(graph, node, operands, target);
}

}  // namespace stitchwork
