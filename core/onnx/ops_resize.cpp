// Resize and Upsample: one dimension after the other, whose weights are known at read time.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/onnx/moves.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {
namespace {

using Values = std::vector<Value>;

constexpr std::int64_t kLongestResized = std::int64_t{1} << 24;  ///< extent of a resized dimension
constexpr std::int64_t kMostTaps = 256;                          ///< elements that one element is made of

struct Method {
  std::string mode, nearest_mode, coordinates;
  double cubic_a = -0.75;
  bool antialias = false, exclude_outside = false;
};

/// One dimension: its extents, and its scale, which may differ from their ratio.
struct Axis {
  std::int64_t dim = 0, in = 0, out = 0;
  double scale = 1, roi_start = 0, roi_end = 1;

  bool unchanged(const Method& method) const {
    const bool all = method.coordinates != "tf_crop_and_resize" || (roi_start == 0 && roi_end == 1);
    return in == out && scale == 1 && all;
  }
};

/// Where element `x` of the result lies in the operand. ONNX's text names the length of the result where its
/// test data (with scales whose product with the extent is not whole) have that product: width.
double original(const Method& method, const Axis& axis, double x) {
  const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out), width = axis.scale * in;
  const std::string& mode = method.coordinates;
  if (mode == "half_pixel") return (x + 0.5) / axis.scale - 0.5;
  if (mode == "half_pixel_symmetric") return in / 2 * (1 - out / width) + (x + 0.5) / axis.scale - 0.5;
  if (mode == "pytorch_half_pixel") return axis.out > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
  if (mode == "align_corners") return width == 1 ? 0 : x * (in - 1) / (width - 1);
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  const double span = (axis.roi_end - axis.roi_start) * (in - 1),
               start = axis.roi_start * (in - 1);  // tf_crop
  return axis.out > 1 ? start + x * span / (out - 1) : start + span / 2;
}

double nearest(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  return mode == "round_prefer_floor" ? std::ceil(x - 0.5) : std::floor(x + 0.5);
}

/// Weight of an element at `distance` from where the result lies: Keys' cubic convolution, or a triangle.
double weight_at(const Method& method, double distance) {
  const double x = std::abs(distance), a = method.cubic_a;
  if (method.mode == "linear") return std::max(1 - x, 0.0);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Result element i is the sum over taps k of weights[k][i] * operand[indices[k][i]].
struct ResizeTaps {
  std::vector<Dims> indices;
  std::vector<std::vector<double>> weights;
};

ResizeTaps taps(NodeContext& c, const Method& method, const Axis& axis) {
  // The kernel is stretched for antialiasing, so that it covers what a result element stands for.
  const double stretch = method.antialias ? std::min(axis.scale, 1.0) : 1;
  const double reach = (method.mode == "linear" ? 1 : 2) / stretch;
  const std::int64_t half =
      reach < static_cast<double>(kMostTaps) ? std::llround(std::ceil(reach)) : kMostTaps;
  c.check(2 * half <= kMostTaps,
          fmt::format("scale {} with antialias needs more than {} elements for one", axis.scale, kMostTaps));
  const auto count = static_cast<std::size_t>(2 * half);
  ResizeTaps result{std::vector<Dims>(count), std::vector<std::vector<double>>(count)};
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double x = original(method, axis, static_cast<double>(i)), floor = std::floor(x);
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const double offset = static_cast<double>(k) - static_cast<double>(half) + 1, at = floor + offset;
      const bool outside = at < 0 || at >= static_cast<double>(axis.in);
      const double weight = method.exclude_outside && outside ? 0 : weight_at(method, (at - x) * stretch);
      const double last = static_cast<double>(axis.in - 1);
      result.indices[k].push_back(static_cast<std::int64_t>(std::clamp(at, 0.0, last)));
      result.weights[k].push_back(weight);
      sum += weight;
    }
    for (std::size_t k = 0; k < count && sum != 0; ++k) result.weights[k].back() /= sum;
  }
  return result;
}

/// A list along dimension `dim`, to be broadcast over the others.
template <typename T>
Value along(Builder& b, DType dtype, const std::vector<T>& values, const Dims& dims, std::int64_t dim) {
  Literal literal = Literal::zeros(Shape::array(dtype, {static_cast<std::int64_t>(values.size())}));
  for (std::size_t i = 0; i < values.size(); ++i)
    literal.set_double(static_cast<std::int64_t>(i), static_cast<double>(values[i]));
  return b.broadcast_in(Builder::known(std::move(literal)), dims, {dim});
}

Value interpolate(NodeContext& c, const Value& x, const Method& method, const Axis& axis) {
  Builder& b = c.b;
  if (method.mode == "nearest") {
    Dims indices;
    const double last = static_cast<double>(axis.in - 1);
    for (std::int64_t i = 0; i < axis.out; ++i) {
      const double at = nearest(method.nearest_mode, original(method, axis, static_cast<double>(i)));
      indices.push_back(static_cast<std::int64_t>(std::clamp(at, 0.0, last)));
    }
    return take(b, x, axis.dim, indices);
  }
  const ResizeTaps all = taps(c, method, axis);
  Dims dims = x.dims();
  dims[static_cast<std::size_t>(axis.dim)] = axis.out;
  Value sum;
  for (std::size_t k = 0; k < all.indices.size(); ++k) {
    if (std::ranges::all_of(all.weights[k], [](double weight) { return weight == 0; })) continue;
    const Value part =
        b.mul(take(b, x, axis.dim, all.indices[k]), along(b, x.dtype(), all.weights[k], dims, axis.dim));
    sum = sum.present() ? b.add(sum, part) : part;
  }
  return sum.present() ? sum : b.full(Builder::scalar(x.dtype(), 0), dims);
}

/// `x` resized along `axes`. Where tf_crop_and_resize looks outside the operand, the result is
/// `extrapolation`.
Value resized(NodeContext& c, const Value& x, const Method& method, const std::vector<Axis>& axes,
              double extrapolation) {
  Builder& b = c.b;
  const bool wide = method.mode == "nearest" || byte_size(x.dtype()) >= 4;
  c.check(method.mode == "nearest" || is_floating(x.dtype()),
          fmt::format("mode {} of {} elements: ONNX's text does not say how they are rounded", method.mode,
                      name(x.dtype())));
  Value result = wide ? x : b.convert(x, DType::kF32);
  Dims dims = x.dims();
  for (const Axis& axis : axes) {
    dims[static_cast<std::size_t>(axis.dim)] = axis.out;
    if (axis.unchanged(method)) continue;
    c.check(axis.in > 0 || axis.out == 0, fmt::format("dimension {} is empty", axis.dim));
    result = axis.out == 0 ? b.slice(result, axis.dim, 0, 0) : interpolate(c, result, method, axis);
  }
  if (method.coordinates == "tf_crop_and_resize") {
    for (const Axis& axis : axes) {
      std::vector<int> outside;
      for (std::int64_t i = 0; i < axis.out; ++i) {
        const double at = original(method, axis, static_cast<double>(i));
        outside.push_back(at < 0 || at > static_cast<double>(axis.in - 1) ? 1 : 0);
      }
      if (std::ranges::count(outside, 1) == 0) continue;
      result = b.select(along(b, DType::kPred, outside, dims, axis.dim),
                        Builder::scalar(result.dtype(), extrapolation), result);
    }
  }
  return b.convert(result, x.dtype());
}

/// Extent times scale as ONNX's shape inference computes it: in single precision.
std::int64_t scaled_extent(NodeContext& c, std::int64_t extent, double scale) {
  c.check(scale > 0 && std::isfinite(scale), fmt::format("scale {} is not positive", scale));
  const float product = std::floor(static_cast<float>(extent) * static_cast<float>(scale));
  c.check(product <= static_cast<float>(kLongestResized), fmt::format("scale {} is too large", scale));
  return static_cast<std::int64_t>(product);
}

void fit_scales(NodeContext& c, std::vector<Axis>& axes, const std::vector<double>& scales) {
  c.check(scales.size() == axes.size(),
          fmt::format("{} scales for {} dimensions", scales.size(), axes.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].scale = scales[i];
    axes[i].out = scaled_extent(c, axes[i].in, scales[i]);
  }
}

void fit_sizes(NodeContext& c, std::vector<Axis>& axes, const Dims& sizes, const std::string& policy) {
  c.check(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
          fmt::format("keep_aspect_ratio_policy '{}' is unknown", policy));
  c.check(sizes.size() == axes.size(), fmt::format("{} sizes for {} dimensions", sizes.size(), axes.size()));
  c.check_range("sizes", sizes, 0, kLongestResized);
  std::optional<double> common;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Axis& axis = axes[i];
    axis.out = sizes[i];
    if (axis.in == 0 && axis.out == 0) continue;
    c.check(axis.in > 0, fmt::format("dimension {} is empty", axis.dim));
    axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    if (!common) common = axis.scale;
    common = policy == "not_larger" ? std::min(*common, axis.scale) : std::max(*common, axis.scale);
  }
  if (policy == "stretch" || !common) return;
  for (Axis& axis : axes) {
    axis.scale = *common;
    axis.out = static_cast<std::int64_t>(std::floor(*common * static_cast<double>(axis.in) + 0.5));
    c.check_range("sizes", {axis.out}, 0, kLongestResized);
  }
}

std::vector<Axis> axes_of(NodeContext& c, const Value& x) {
  Dims dims;
  for (std::int64_t d = 0; d < x.rank(); ++d) dims.push_back(d);
  if (c.version >= 18 && c.given("axes")) dims = c.axes(c.integers("axes"), x.rank());
  std::vector<Axis> axes;
  for (const std::int64_t d : dims) axes.push_back({d, x.dim(d), x.dim(d)});
  return axes;
}

/// Before operator set 11 ONNX's text says nothing of coordinates; nearest with whole scales leaves no
/// choice.
Value repeated(NodeContext& c, const Value& x, const std::vector<double>& scales) {
  const std::string mode = c.text("mode", "nearest");
  c.check(mode == "nearest" && std::ranges::all_of(scales, [](double s) { return s == std::floor(s); }),
          fmt::format("mode {} with scales {} is not defined in operator set {}", mode,
                      fmt::join(scales, ","), c.version));
  std::vector<Axis> axes = axes_of(c, x);
  fit_scales(c, axes, scales);
  return resized(c, x, {"nearest", "floor", "asymmetric"}, axes, 0);
}

Values lower_upsample(NodeContext& c) {
  c.check(c.version < 10, "operator set 10 has Resize instead");
  return {repeated(c, c.in(0), c.version < 9 ? c.numbers("scales") : c.known_numbers(1))};
}

Method method_of(NodeContext& c) {
  Method method{c.text("mode", "nearest"), c.text("nearest_mode", "round_prefer_floor"),
                c.text("coordinate_transformation_mode", "half_pixel"), c.number("cubic_coeff_a", -0.75)};
  if (c.version >= 18) method.antialias = c.flag("antialias", false);
  method.exclude_outside = c.flag("exclude_outside", false);
  const auto one_of = [&](const char* what, const std::string& value, const std::vector<std::string>& known) {
    c.check(std::ranges::count(known, value) == 1,
            fmt::format("{} '{}' is not supported in operator set {}", what, value, c.version));
  };
  one_of("mode", method.mode, {"nearest", "linear", "cubic"});
  one_of("nearest_mode", method.nearest_mode, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  std::vector<std::string> coordinates{"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                       "tf_crop_and_resize"};
  if (c.version < 13) coordinates.emplace_back("tf_half_pixel_for_nn");
  if (c.version >= 19) coordinates.emplace_back("half_pixel_symmetric");
  one_of("coordinate_transformation_mode", method.coordinates, coordinates);
  c.check(method.mode != "nearest" || !method.antialias, "mode nearest has no antialias");
  return method;
}

Values lower_resize(NodeContext& c) {
  const Value& x = c.in(0);
  if (c.version < 11) return {repeated(c, x, c.known_numbers(1))};
  const Method method = method_of(c);
  std::vector<Axis> axes = axes_of(c, x);
  const auto given = [&](int i) { return c.has(i) && product(c.in(i).dims()) > 0; };
  // Scales have no use for it; exporters write it all the same.
  const std::string policy = c.version >= 18 ? c.text("keep_aspect_ratio_policy", "stretch") : "stretch";
  const bool by_scales = given(2) || (c.has(2) && axes.empty());
  c.check(by_scales != given(3) || axes.empty(), "exactly one of scales and sizes is needed");
  if (by_scales) fit_scales(c, axes, c.known_numbers(2));
  if (given(3)) fit_sizes(c, axes, c.known_integers(3), policy);
  for (const int i : {1, 2, 3}) c.ignore_input(i);
  const double extrapolation = c.number("extrapolation_value", 0);
  if (method.coordinates == "tf_crop_and_resize") {
    const std::vector<double> roi = c.known_numbers(1);
    c.check(roi.size() == 2 * axes.size(),
            fmt::format("{} values in roi for {} dimensions", roi.size(), axes.size()));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axes[i].roi_start = roi[i];
      axes[i].roi_end = roi[i + axes.size()];
      // ONNX's text scales the region, its test data and reference the whole dimension.
      c.check(!by_scales || axes[i].roi_end - axes[i].roi_start == 1,
              "scales with a roi that is a part of a dimension are ambiguous");
    }
  }
  return {resized(c, x, method, axes, extrapolation)};
}

constexpr std::array kResizeRows = {
    OperatorRow{"Resize", 10, lower_resize},
    OperatorRow{"Upsample", 7, lower_upsample},
};

}  // namespace

std::span<const OperatorRow> resize_operators() { return kResizeRows; }

}  // namespace stitchwork::onnx_reader
