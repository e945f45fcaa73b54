// Sort along one dimension by a comparator "does the first come before the second?". Always stable.
#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/graph/dtype_dispatch.h"
#include "core/graph/window.h"
#include "core/index/strided.h"

namespace stitchwork {
namespace {

Literal element(const Literal& source, std::int64_t i) {
  Literal result = Literal::zeros(Shape::array(source.shape.dtype, {1}));
  const auto width = static_cast<std::ptrdiff_t>(byte_size(source.shape.dtype));
  std::copy_n(source.bytes.begin() + i * width, width, result.bytes.begin());
  return result;
}

/// compare(lhs, rhs) of the operands' elements at linear indices a and b.
bool comes_before(const Graph& graph, const Node& node, Values operands, std::int64_t a, std::int64_t b) {
  std::vector<Literal> values;
  for (const Literal* operand : operands) {
    values.push_back(element(*operand, a));
    values.push_back(element(*operand, b));
  }
  std::vector<const Literal*> arguments;
  for (const Literal& value : values) arguments.push_back(&value);
  return apply_to_vectors(graph, applied(node), arguments, 1)[0].get_int(0) != 0;
}

}  // namespace

Literal evaluate_sort(const Graph& graph, const Node& node, Values operands) {
  if (node.attrs.dimensions.size() != 1) throw Error("sort needs dimensions={D} with one dimension");
  const auto dim = static_cast<std::size_t>(node.attrs.dimensions[0]);
  const std::vector<std::int64_t>& dims = operands[0]->shape.dims;
  const std::int64_t stride = strides_of(dims).at(dim), extent = dims[dim];
  std::vector<Literal> results;
  for (const Literal* operand : operands) results.push_back(*operand);
  std::vector<std::int64_t> order(static_cast<std::size_t>(extent));
  const std::int64_t lines = extent == 0 ? 0 : operands[0]->shape.elements_count() / extent;
  for (std::int64_t line = 0; line < lines; ++line) {
    const std::int64_t first = line / stride * stride * extent + line % stride;
    std::iota(order.begin(), order.end(), std::int64_t{0});
    // merge sort of the library; a comparator that is no strict order gives some permutation
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return comes_before(graph, node, operands, first + a * stride, first + b * stride);
    });
    for (std::size_t r = 0; r < results.size(); ++r)
      with_width(results[r].shape.dtype, [&](auto tag) {
        using T = decltype(tag);
        for (std::int64_t i = 0; i < extent; ++i)
          results[r].data<T>()[first + i * stride] =
              operands[r]->data<T>()[first + order[static_cast<std::size_t>(i)] * stride];
      });
  }
  if (results.size() == 1) return std::move(results[0]);
  Literal tuple;
  tuple.shape = node.shape;
  tuple.elements = std::move(results);
  return tuple;
}

Literal evaluate_top_k(const Node& node, Values operands) {
  const Shape& from = operands[0]->shape;
  if (!node.shape.is_tuple || node.shape.elements.size() != 2 || from.dims.empty() ||
      node.shape.elements[0].rank() != from.rank() ||
      node.shape.elements[1].dims != node.shape.elements[0].dims ||
      node.shape.elements[0].dims.back() > from.dims.back())
    throw Error(fmt::format("topk of {} cannot give {}", to_text(from), to_text(node.shape)),
                "it gives the values of every row and their places");
  const std::int64_t cols = from.dims.back(), k = node.shape.elements[0].dims.back();
  const bool largest = other_attribute(node, "largest") != "false";
  Literal result;
  result.shape = node.shape;
  for (const Shape& element : node.shape.elements) result.elements.push_back(Literal::zeros(element));
  const std::int64_t rows = cols == 0 ? 0 : from.elements_count() / cols;
  std::vector<std::int64_t> order(static_cast<std::size_t>(cols));
  with_storage(from.dtype, [&](auto tag) {
    using S = decltype(tag);
    const auto* in = operands[0]->data<typename S::Stored>();
    auto* out = result.elements[0].data<typename S::Stored>();
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto at = [&](std::int64_t i) { return S::widen(in[row * cols + i]); };
      const auto less = [&](std::int64_t a, std::int64_t b) {
        const bool a_is_nan = at(a) != at(a), b_is_nan = at(b) != at(b);
        return a_is_nan || b_is_nan ? b_is_nan && !a_is_nan : at(a) < at(b);
      };
      std::iota(order.begin(), order.end(), std::int64_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int64_t a, std::int64_t b) { return largest ? less(b, a) : less(a, b); });
      for (std::int64_t i = 0; i < k; ++i) {
        out[row * k + i] = in[row * cols + order[static_cast<std::size_t>(i)]];
        result.elements[1].set_int(row * k + i, order[static_cast<std::size_t>(i)]);
      }
    }
  });
  return result;
}

}  // namespace stitchwork
