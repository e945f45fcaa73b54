#include <algorithm>

#include "core/base/error.h"
#include "core/graph/complex_type.h"
#include "core/graph/infer_families.h"
#include "core/graph/window.h"

namespace stitchwork {
namespace {

std::int64_t extent_at(const std::vector<std::int64_t>& values, std::int64_t i) {
  return values[static_cast<std::size_t>(i)];
}

Shape with_declared_type(const Node& node, DType fallback, std::vector<std::int64_t> dims) {
  const bool declared = !node.shape.is_tuple && node.shape.dims == dims;
  return Shape::array(declared ? node.shape.dtype : fallback, std::move(dims));
}

void check_dot_dims(const std::vector<std::int64_t>& batch, const std::vector<std::int64_t>& contracting,
                    const Shape& shape, std::string_view side) {
  std::vector<bool> seen(shape.dims.size());
  for (const auto* dims : {&batch, &contracting})
    for (std::int64_t dim : *dims) {
      if (dim < 0 || dim >= shape.rank() || seen[static_cast<std::size_t>(dim)])
        throw Error(fmt::format("dot names {} dimension {} twice or outside {}", side, dim, to_text(shape)));
      seen[static_cast<std::size_t>(dim)] = true;
    }
}

void check_dot_pairs(const std::vector<std::int64_t>& left, const std::vector<std::int64_t>& right,
                     const Shape& lhs, const Shape& rhs, std::string_view what) {
  if (left.size() != right.size())
    throw Error(fmt::format("dot has {} {} dimensions on the left, {} on the right", left.size(), what,
                            right.size()));
  for (std::size_t i = 0; i < left.size(); ++i)
    if (extent_at(lhs.dims, left[i]) != extent_at(rhs.dims, right[i]))
      throw Error(fmt::format("dot's {} dimensions {} of {} and {} of {} differ", what, left[i], to_text(lhs),
                              right[i], to_text(rhs)));
}

}  // namespace

Shape infer_dot(const Node& node, const Shape& lhs, const Shape& rhs) {
  const DotDims dims = node.attrs.dot.value_or(DotDims{});
  check_dot_dims(dims.lhs_batch, dims.lhs_contracting, lhs, "left");
  check_dot_dims(dims.rhs_batch, dims.rhs_contracting, rhs, "right");
  check_dot_pairs(dims.lhs_batch, dims.rhs_batch, lhs, rhs, "batch");
  check_dot_pairs(dims.lhs_contracting, dims.rhs_contracting, lhs, rhs, "contracting");
  std::vector<std::int64_t> result;
  for (std::int64_t dim : dims.lhs_batch) result.push_back(extent_at(lhs.dims, dim));
  for (int i = 0; i < lhs.rank(); ++i)
    if (std::ranges::count(dims.lhs_batch, i) + std::ranges::count(dims.lhs_contracting, i) == 0)
      result.push_back(extent_at(lhs.dims, i));
  for (int i = 0; i < rhs.rank(); ++i)
    if (std::ranges::count(dims.rhs_batch, i) + std::ranges::count(dims.rhs_contracting, i) == 0)
      result.push_back(extent_at(rhs.dims, i));
  return with_declared_type(node, lhs.dtype, std::move(result));
}

Shape infer_fft(const Node& node, const Shape& from) {
  const std::string_view type = other_attribute(node, "fft_type");
  const bool from_real = type == "RFFT", to_real = type == "IRFFT";
  if (!from_real && !to_real && type != "FFT" && type != "IFFT")
    throw Error(fmt::format("fft_type={} is unknown", type), "FFT, IFFT, RFFT and IRFFT are known");
  if (!is_complex(from.dtype) && from.dtype != DType::kF32 && from.dtype != DType::kF64)
    throw Error(fmt::format("fft does not take {}", name(from.dtype)), "it takes f32, f64, c64 and c128");
  if (from_real && is_complex(from.dtype))
    throw Error(fmt::format("an RFFT does not take {}", name(from.dtype)), "it takes f32 and f64");
  const bool pairs = !is_complex(from.dtype) && (!from_real || node.shape.dtype == from.dtype);
  std::vector<std::int64_t> dims = from.dims;
  if (pairs && !from_real) {
    if (dims.empty() || dims.back() != 2)
      throw Error(fmt::format("fft of type {} does not take {}", type, to_text(from)),
                  "it takes c64 and c128");
    dims.pop_back();
  }
  const std::vector<std::int64_t> length = other_integers(node, "fft_length");
  if (length.empty() || length.size() > 3 || length.size() > dims.size())
    throw Error(fmt::format("fft_length names {} dimensions of {}", length.size(), to_text(from)),
                "1 to 3 of the last dimensions are transformed");
  for (std::size_t i = 0, first = dims.size() - length.size(); i < length.size(); ++i) {
    const bool halved = to_real && i + 1 == length.size();
    const std::int64_t taken = halved ? length[i] / 2 + 1 : length[i];
    if (length[i] < 0 || dims[first + i] != taken)
      throw Error(
          fmt::format("fft_length {} does not fit dimension {} of {}", length[i], first + i, to_text(from)));
  }
  if (from_real) dims.back() = length.back() / 2 + 1;
  if (to_real) dims.back() = length.back();
  if (pairs && !to_real) dims.push_back(2);
  if (pairs) return Shape::array(from.dtype, std::move(dims));
  return Shape::array(to_real ? part_of(from.dtype) : complex_of(part_of(from.dtype)), std::move(dims));
}

Shape infer_convolution(const Node& node, const Shape& input, const Shape& kernel) {
  const std::string_view labels = other_attribute(node, "dim_labels");
  if (labels.empty()) throw Error("convolution lacks dim_labels", "for example dim_labels=b01f_01io->b01f");
  const ConvolutionDims dims = parse_dim_labels(labels);
  const auto spatial = static_cast<int>(dims.input_spatial.size());
  if (input.rank() != spatial + 2 || kernel.rank() != spatial + 2)
    throw Error(fmt::format("convolution of {} with {} does not fit dim_labels '{}'", to_text(input),
                            to_text(kernel), labels));
  const std::vector<WindowDim> window = window_of(node, spatial);
  const std::int64_t groups = other_integer(node, "feature_group_count", 1);
  const std::int64_t batch_groups = other_integer(node, "batch_group_count", 1);
  const std::int64_t features = extent_at(input.dims, dims.input_feature),
                     batch = extent_at(input.dims, dims.input_batch);
  const std::int64_t outputs = extent_at(kernel.dims, dims.kernel_output_feature);
  if (groups < 1 || features != groups * extent_at(kernel.dims, dims.kernel_input_feature) ||
      outputs % groups != 0)
    throw Error(
        fmt::format("convolution: {} input features in {} groups do not fit a kernel of {} in, {} out",
                    features, groups, extent_at(kernel.dims, dims.kernel_input_feature), outputs));
  if (batch_groups < 1 || batch % batch_groups != 0 || outputs % batch_groups != 0)
    throw Error(fmt::format("convolution: batch {} and {} output features do not split into {} batch groups",
                            batch, outputs, batch_groups));
  std::vector<std::int64_t> result(static_cast<std::size_t>(input.rank()));
  result[static_cast<std::size_t>(dims.output_batch)] = batch / batch_groups;
  result[static_cast<std::size_t>(dims.output_feature)] = outputs;
  for (int i = 0; i < spatial; ++i) {
    const auto s = static_cast<std::size_t>(i);
    if (extent_at(kernel.dims, dims.kernel_spatial[s]) != window[s].size)
      throw Error(fmt::format("convolution's window has size {} in spatial dimension {}, its kernel {}",
                              window[s].size, i, extent_at(kernel.dims, dims.kernel_spatial[s])));
    result[static_cast<std::size_t>(dims.output_spatial[s])] =
        window_positions(extent_at(input.dims, dims.input_spatial[s]), window[s]);
  }
  return with_declared_type(node, input.dtype, std::move(result));
}

std::vector<std::int64_t> infer_window_dims(const Node& node, const Shape& from) {
  const std::vector<WindowDim> window = window_of(node, from.rank());
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < from.dims.size(); ++i)
    result.push_back(window_positions(from.dims[i], window[i]));
  return result;
}

}  // namespace stitchwork
