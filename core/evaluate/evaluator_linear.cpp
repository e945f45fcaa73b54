// Products through BLAS in float64.
#include <cblas.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/evaluate/evaluator_ops.h"
#include "core/graph/dtype_dispatch.h"
#include "core/graph/window.h"
#include "core/index/strided.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t product(const Dims& dims) {
  std::int64_t result = 1;
  for (std::int64_t d : dims) result *= d;
  return result;
}

/// c[m,n] += a[m,k] b[k,n], all row-major.
void multiply_add(const double* a, const double* b, double* c, std::int64_t m, std::int64_t n,
                  std::int64_t k) {
  if (m == 0 || n == 0 || k == 0) return;
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(m), static_cast<blasint>(n),
              static_cast<blasint>(k), 1.0, a, static_cast<blasint>(k), b, static_cast<blasint>(n), 1.0, c,
              static_cast<blasint>(n));
}
/// Integers wrap modulo 2^64, so that their low bits are those of any narrower type.
void multiply_add(const std::uint64_t* a, const std::uint64_t* b, std::uint64_t* c, std::int64_t m,
                  std::int64_t n, std::int64_t k) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
}

/// The operand with its dims in `order`, converted.
template <typename T>
std::vector<T> packed_values(const Literal& literal, const Dims& order) {
  const Dims strides = strides_of(literal.shape.dims);
  StridedBox<2> box;
  for (std::int64_t d : order) {
    box.dims.push_back(literal.shape.dims[static_cast<std::size_t>(d)]);
    box.strides[1].push_back(strides[static_cast<std::size_t>(d)]);
  }
  box.strides[0] = strides_of(box.dims);
  std::vector<T> result(static_cast<std::size_t>(literal.shape.elements_count()));
  with_storage(literal.shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    copy_box(box, result.data(), literal.data<typename S::Stored>(),
             [](typename S::Stored stored) { return static_cast<T>(S::widen(stored)); });
  });
  return result;
}

template <typename T>
Literal unpacked_values(const std::vector<T>& values, const Shape& shape) {
  Literal result = Literal::zeros(shape);
  with_storage(shape.dtype, [&](auto tag) {
    using S = decltype(tag);
    auto* out = result.data<typename S::Stored>();
    for (std::size_t i = 0; i < values.size(); ++i)
      out[i] = S::narrow(static_cast<typename S::Value>(values[i]));
  });
  return result;
}

/// Dims of `shape` in neither list, ascending.
Dims free_dims(const Shape& shape, const Dims& batch, const Dims& contracting) {
  Dims result;
  for (int d = 0; d < shape.rank(); ++d)
    if (std::ranges::count(batch, d) + std::ranges::count(contracting, d) == 0) result.push_back(d);
  return result;
}

Dims extents(const Shape& shape, const Dims& dims) {
  Dims result;
  for (std::int64_t d : dims) result.push_back(shape.dims[static_cast<std::size_t>(d)]);
  return result;
}

Dims joined(Dims a, const Dims& b, const Dims& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

template <typename T>
Literal dot_in(const Node& node, const Literal& lhs, const Literal& rhs) {
  const DotDims dims = node.attrs.dot.value_or(DotDims{});
  const Dims lhs_free = free_dims(lhs.shape, dims.lhs_batch, dims.lhs_contracting);
  const Dims rhs_free = free_dims(rhs.shape, dims.rhs_batch, dims.rhs_contracting);
  const std::vector<T> a = packed_values<T>(lhs, joined(dims.lhs_batch, lhs_free, dims.lhs_contracting));
  const std::vector<T> b = packed_values<T>(rhs, joined(dims.rhs_batch, dims.rhs_contracting, rhs_free));
  const std::int64_t batch = product(extents(lhs.shape, dims.lhs_batch)),
                     m = product(extents(lhs.shape, lhs_free));
  const std::int64_t k = product(extents(lhs.shape, dims.lhs_contracting)),
                     n = product(extents(rhs.shape, rhs_free));
  std::vector<T> c(static_cast<std::size_t>(batch * m * n));
  for (std::int64_t i = 0; i < batch; ++i)
    multiply_add(a.data() + i * m * k, b.data() + i * k * n, c.data() + i * m * n, m, n, k);
  return unpacked_values(c, node.shape);
}

/// Input packed_values [batch, spatial..., features], kernel [spatial..., in, out]. For every window position
/// the input under it is gathered into a matrix [batch * output spatial, in] and multiplied.
template <typename T>
Literal convolution_in(const Node& node, const Literal& input, const Literal& kernel) {
  const ConvolutionDims labels = parse_dim_labels(other_attribute(node, "dim_labels"));
  const auto spatial = static_cast<int>(labels.input_spatial.size());
  const std::vector<WindowDim> window = window_of(node, spatial);
  const std::int64_t groups = other_integer(node, "feature_group_count", 1);
  const std::int64_t batch_groups = other_integer(node, "batch_group_count", 1);

  Dims input_order{labels.input_batch}, kernel_order, output_order{labels.output_batch};
  for (int d : labels.input_spatial) input_order.push_back(d);
  for (int d : labels.kernel_spatial) kernel_order.push_back(d);
  for (int d : labels.output_spatial) output_order.push_back(d);
  const Dims in_extents = extents(input.shape, Dims(input_order.begin() + 1, input_order.end()));
  const Dims window_extents = extents(kernel.shape, kernel_order);
  const Dims out_extents = extents(node.shape, Dims(output_order.begin() + 1, output_order.end()));
  input_order.push_back(labels.input_feature);
  kernel_order.push_back(labels.kernel_input_feature);
  kernel_order.push_back(labels.kernel_output_feature);
  output_order.push_back(labels.output_feature);
  const std::vector<T> x = packed_values<T>(input, input_order), w = packed_values<T>(kernel, kernel_order);

  const std::int64_t features = extents(input.shape, {labels.input_feature})[0];
  const std::int64_t in = extents(kernel.shape, {labels.kernel_input_feature})[0];
  const std::int64_t out = extents(kernel.shape, {labels.kernel_output_feature})[0];
  const std::int64_t batch = extents(node.shape, {labels.output_batch})[0];
  const std::int64_t positions = product(out_extents), in_positions = product(in_extents);
  const Dims in_strides = strides_of(in_extents);
  const std::int64_t parts = groups * batch_groups, part_out = out / parts;  // at most one of them is not 1
  std::vector<T> result(static_cast<std::size_t>(batch * positions * out)), patch, slab, part;
  if (result.empty() || product(window_extents) == 0) return unpacked_values(result, node.shape);

  for (std::int64_t g = 0; g < parts; ++g) {
    part.assign(static_cast<std::size_t>(batch * positions * part_out), T{});
    Dims at(window_extents.size(), 0);
    std::int64_t window_number = 0;
    do {
      patch.assign(static_cast<std::size_t>(batch * positions * in), T{});
      Dims o(out_extents.size(), 0);
      std::int64_t position = 0;
      do {
        std::int64_t from = 0;
        for (std::size_t d = 0; d < o.size() && from >= 0; ++d) {
          const std::int64_t tap = window[d].reversed ? window[d].size - 1 - at[d] : at[d];
          const std::int64_t i = window_input_index(o[d], tap, in_extents[d], window[d]);
          from = i < 0 ? -1 : from + i * in_strides[d];
        }
        for (std::int64_t n = 0; n < batch && from >= 0; ++n) {
          const std::int64_t image = batch_groups > 1 ? g * batch + n : n;
          const std::int64_t first = batch_groups > 1 ? 0 : g * in;
          std::copy_n(x.begin() + (image * in_positions + from) * features + first, in,
                      patch.begin() + (n * positions + position) * in);
        }
        ++position;
      } while (advance(o, out_extents));
      slab.resize(static_cast<std::size_t>(in * part_out));
      for (std::int64_t i = 0; i < in; ++i)
        std::copy_n(w.begin() + (window_number * in + i) * out + g * part_out, part_out,
                    slab.begin() + i * part_out);
      multiply_add(patch.data(), slab.data(), part.data(), batch * positions, part_out, in);
      ++window_number;
    } while (advance(at, window_extents));
    for (std::int64_t row = 0; row < batch * positions; ++row)
      std::copy_n(part.begin() + row * part_out, part_out, result.begin() + row * out + g * part_out);
  }

  // From [batch, spatial..., features] to the output's own order.
  Shape packed_shape = Shape::array(node.shape.dtype, extents(node.shape, output_order));
  const Literal ordered = unpacked_values(result, packed_shape);
  Node transpose;
  transpose.op = Op::kTranspose;
  transpose.shape = node.shape;
  transpose.attrs.dimensions.resize(output_order.size());
  for (std::size_t i = 0; i < output_order.size(); ++i)
    transpose.attrs.dimensions[static_cast<std::size_t>(output_order[i])] = static_cast<std::int64_t>(i);
  const Literal* operand = &ordered;
  return evaluate_layout(transpose, {&operand, 1});
}

}  // namespace

Literal evaluate_dot(const Node& node, Values operands) {
  return is_floating(node.shape.dtype) ? dot_in<double>(node, *operands[0], *operands[1])
                                       : dot_in<std::uint64_t>(node, *operands[0], *operands[1]);
}

Literal evaluate_convolution(const Node& node, Values operands) {
  return is_floating(node.shape.dtype) ? convolution_in<double>(node, *operands[0], *operands[1])
                                       : convolution_in<std::uint64_t>(node, *operands[0], *operands[1]);
}

}  // namespace stitchwork
