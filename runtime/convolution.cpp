#include "runtime/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "codegen/print/print_text.h"
#include "core/base/error.h"
#include "core/graph/window.h"
#include "core/index/strided.h"

namespace stitchwork {
namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t along(const Dims& dims, int d) { return dims[static_cast<std::size_t>(d)]; }

/// What a dimension of the output does to the three arrays, apart from the patches' place in memory.
struct OutputDim {
  std::int64_t extent = 1, c = 0, input = 0;  ///< input: stride of the batch dimension, 0 for spatial ones
  int spatial = -1;                           ///< index of the spatial dimension
};

class Builder {
 public:
  Builder(const Node& node, const Shape& input, const Shape& kernel)
      : node_(node),
        input_(input),
        kernel_(kernel),
        labels_(parse_dim_labels(other_attribute(node, "dim_labels"))),
        window_(window_of(node, static_cast<int>(labels_.input_spatial.size()))),
        feature_groups_(other_integer(node, "feature_group_count", 1)),
        batch_groups_(other_integer(node, "batch_group_count", 1)),
        x_(strides_of(input.dims)),
        w_(strides_of(kernel.dims)),
        y_(strides_of(node.shape.dims)) {}

  std::optional<ConvolutionProduct> build() {
    gather_weights();
    const std::size_t feature = static_cast<std::size_t>(labels_.output_feature);
    for (std::size_t d = 0; d < node_.shape.dims.size(); ++d)
      if (d != feature) (d < feature ? before_ : after_).push_back(output_dim(static_cast<int>(d)));
    const bool last = std::all_of(after_.begin(), after_.end(), [](const auto& d) { return d.extent == 1; });
    return last ? features_last() : features_before();
  }

 private:
  OutputDim output_dim(int d) const {
    OutputDim dim{along(node_.shape.dims, d), along(y_, d), 0, -1};
    if (d == labels_.output_batch) {
      dim.input = along(x_, labels_.input_batch);
    } else {
      const auto found = std::find(labels_.output_spatial.begin(), labels_.output_spatial.end(), d);
      dim.spatial = static_cast<int>(found - labels_.output_spatial.begin());
    }
    return dim;
  }

  /// [spatial and input features in the kernel's order] x output features: as they lie, if the output
  /// features are the first or the last dimension, else features last.
  void gather_weights() {
    for (int d = 0; d < kernel_.rank(); ++d)
      if (d != labels_.kernel_output_feature) taps_.push_back(d);
    const bool first = labels_.kernel_output_feature == 0;
    Dims order(taps_.begin(), taps_.end());
    order.insert(first ? order.begin() : order.end(), labels_.kernel_output_feature);
    for (const std::int64_t d : order)
      made_.weights.axes.push_back(
          {along(kernel_.dims, static_cast<int>(d)), along(w_, static_cast<int>(d))});
    Dims extents;
    for (const auto& axis : made_.weights.axes) extents.push_back(axis.extent);
    const Dims strides = strides_of(extents);
    for (std::size_t t = 0; t < taps_.size(); ++t) tap_stride_.push_back(strides[first ? t + 1 : t]);
    feature_stride_ = first ? strides.front() : strides.back();
  }

  std::int64_t groups() const { return feature_groups_ * batch_groups_; }  // at most one of them is not 1
  std::int64_t features() const { return along(node_.shape.dims, labels_.output_feature) / groups(); }

  /// Appends an axis to the patches; its place among them.
  std::size_t add(std::int64_t extent, std::int64_t stride) {
    made_.patches.axes.push_back({extent, stride});
    return made_.patches.axes.size() - 1;
  }
  void add_group() {
    const std::int64_t stride =
        feature_groups_ > 1
            ? along(kernel_.dims, labels_.kernel_input_feature) * along(x_, labels_.input_feature)
            : along(node_.shape.dims, labels_.output_batch) * along(x_, labels_.input_batch);
    group_ = add(groups(), groups() > 1 ? stride : 0);
  }
  void add_positions(const std::vector<OutputDim>& dims) {
    for (const OutputDim& dim : dims) {
      const std::size_t axis = add(dim.extent, dim.input);
      if (dim.spatial >= 0) position_[static_cast<std::size_t>(dim.spatial)] = axis;
      places_.push_back(axis);
    }
  }
  void add_taps() {
    for (const int d : taps_) {
      const bool feature = d == labels_.kernel_input_feature;
      const std::size_t axis = add(along(kernel_.dims, d), feature ? along(x_, labels_.input_feature) : 0);
      taps_at_.push_back(axis);
      if (feature) continue;
      const auto found = std::find(labels_.kernel_spatial.begin(), labels_.kernel_spatial.end(), d);
      tap_[static_cast<std::size_t>(found - labels_.kernel_spatial.begin())] = axis;
    }
  }

  /// What each spatial dimension reads. A window of one element without padding or dilation is an axis like
  /// others.
  void add_windows() {
    for (std::size_t s = 0; s < window_.size(); ++s) {
      const WindowDim& w = window_[s];
      Gather::Window window;
      window.position = position_[s];
      window.tap = tap_[s];
      window.step = w.stride;
      window.dilation = w.reversed ? -w.window_dilation : w.window_dilation;
      window.origin = -w.pad_low + (w.reversed ? (w.size - 1) * w.window_dilation : 0);
      window.holes = w.base_dilation;
      window.extent = along(input_.dims, labels_.input_spatial[s]);
      window.stride = along(x_, labels_.input_spatial[s]);
      if (w.size == 1 && w.pad_low == 0 && w.pad_high <= 0 && w.base_dilation == 1)
        made_.patches.axes[position_[s]].stride = w.stride * window.stride;
      else
        made_.patches.windows.push_back(window);
    }
  }

  /// Strides of the patches' axes where they lie densely.
  Dims patch_strides() const {
    Dims extents;
    for (const auto& axis : made_.patches.axes) extents.push_back(axis.extent);
    return strides_of(extents);
  }

  /// Rows are the output's positions, columns its features: patches [group, positions, taps].
  std::optional<ConvolutionProduct> features_last() {
    add_group();
    add_positions(before_);
    add_positions(after_);
    add_taps();
    add_windows();
    const Dims p = patch_strides();
    std::vector<OutputDim> dims = before_;
    dims.insert(dims.end(), after_.begin(), after_.end());
    const std::int64_t c = along(y_, labels_.output_feature);
    Product product;
    product.batch.push_back({groups(), p[group_], feature_stride_ * features(), c * features()});
    for (std::size_t d = 0; d < dims.size(); ++d)
      product.rows.push_back({dims[d].extent, p[places_[d]], 0, dims[d].c});
    product.cols.push_back({features(), 0, feature_stride_, c});
    for (std::size_t t = 0; t < taps_.size(); ++t)
      product.contracted.push_back({along(kernel_.dims, taps_[t]), p[taps_at_[t]], tap_stride_[t], 0});
    made_.patches_first = true;
    return finished(std::move(product));
  }

  /// Rows are features, columns the output's dimensions behind them: patches [group, before, taps, behind].
  std::optional<ConvolutionProduct> features_before() {
    add_group();
    add_positions(before_);
    add_taps();
    add_positions(after_);
    add_windows();
    const Dims p = patch_strides();
    const std::int64_t c = along(y_, labels_.output_feature);
    Product product;
    product.batch.push_back({groups(), feature_stride_ * features(), p[group_], c * features()});
    for (std::size_t d = 0; d < before_.size(); ++d)
      product.batch.push_back({before_[d].extent, 0, p[places_[d]], before_[d].c});
    product.rows.push_back({features(), feature_stride_, 0, c});
    for (std::size_t d = 0; d < after_.size(); ++d)
      product.cols.push_back({after_[d].extent, 0, p[places_[before_.size() + d]], after_[d].c});
    for (std::size_t t = 0; t < taps_.size(); ++t)
      product.contracted.push_back({along(kernel_.dims, taps_[t]), tap_stride_[t], p[taps_at_[t]], 0});
    made_.patches_first = false;
    return finished(std::move(product));
  }

  std::optional<ConvolutionProduct> finished(Product product) {
    const auto gemm = gemm_of(std::move(product));
    SW_CHECK(gemm.has_value(), "{}: its patches and weights make no matrices", node_.name);
    made_.gemm = *gemm;
    return std::move(made_);
  }

  const Node& node_;
  const Shape &input_, &kernel_;
  ConvolutionDims labels_;
  std::vector<WindowDim> window_;
  std::int64_t feature_groups_, batch_groups_;
  Dims x_, w_, y_;                         ///< strides of input, kernel, output
  std::vector<OutputDim> before_, after_;  ///< the output's dimensions around its features
  std::vector<int> taps_;                  ///< the kernel's dimensions but its output features
  Dims tap_stride_;                        ///< of the gathered weights
  std::int64_t feature_stride_ = 1;        ///< likewise
  std::size_t group_ = 0;                  ///< axes of the patches, here and below
  std::vector<std::size_t> places_, taps_at_;
  std::vector<std::size_t> position_ = std::vector<std::size_t>(window_.size()), tap_ = position_;
  ConvolutionProduct made_;
};

}  // namespace

std::int64_t Gather::elements() const {
  std::int64_t product = 1;
  for (const Axis& axis : axes) product *= axis.extent;
  return product;
}

bool Gather::copies_nothing() const {
  if (!windows.empty()) return false;
  std::int64_t dense = 1;
  for (std::size_t k = axes.size(); k-- > 0; dense *= axes[k].extent)
    if (axes[k].extent > 1 && axes[k].stride != dense) return false;
  return true;
}

std::int64_t Gather::source_of(std::int64_t element) const {
  Dims index(axes.size());
  std::int64_t source = 0;
  for (std::size_t k = axes.size(); k-- > 0; element /= axes[k].extent) {
    index[k] = element % axes[k].extent;
    source += index[k] * axes[k].stride;
  }
  for (const Window& w : windows) {
    const std::int64_t place = w.origin + index[w.position] * w.step + index[w.tap] * w.dilation;
    if (place < 0 || place % w.holes != 0 || place / w.holes >= w.extent) return -1;
    source += place / w.holes * w.stride;
  }
  return source;
}

std::string gather_cuda(const Gather& gather, std::int64_t source_elements, std::int64_t bytes_per_element) {
  const char* type = bytes_per_element == 1   ? "unsigned char"
                     : bytes_per_element == 2 ? "unsigned short"
                     : bytes_per_element == 4 ? "unsigned int"
                                              : "unsigned long long";
  const std::int64_t total = gather.elements();
  // A grid's last step past the end, and places in the padding, must fit too.
  std::int64_t most = std::max(total, source_elements);
  for (const auto& w : gather.windows)
    most = std::max(most, std::abs(w.origin) + gather.axes[w.position].extent * w.step +
                              gather.axes[w.tap].extent * std::abs(w.dilation));
  const bool wide = most > std::numeric_limits<std::int32_t>::max() / 2;
  const char* index = wide ? "long long" : "int";
  const auto unsigned_index = fmt::format("unsigned {}", index);
  std::string text = fmt::format(
      "// A convolution's patches or weights as a dense matrix.\n"
      "extern \"C\" __global__ void __launch_bounds__({0}) gather(const {1}* __restrict__ source, {1}* "
      "__restrict__ "
      "gathered) {{\n  for ({2} i = ({2})blockIdx.x * {0}u + threadIdx.x; i < {3}u; i += ({2})gridDim.x * "
      "{0}u) "
      "{{\n    {2} rest = i;\n",
      kGatherBlock, type, unsigned_index, total);
  for (std::size_t k = gather.axes.size(); k-- > 0;) {
    text += k == 0 ? fmt::format("    const {} i0 = rest;\n", index)
                   : fmt::format("    const {0} i{1} = rest % {2}u;\n    rest /= {2}u;\n", index, k,
                                 gather.axes[k].extent);
  }
  std::string at = "0", inside = "true";
  for (std::size_t k = 0; k < gather.axes.size(); ++k)
    if (gather.axes[k].stride != 0)
      at += fmt::format(" + ({})i{} * {}", wide ? "long long" : "int", k, gather.axes[k].stride);
  for (std::size_t w = 0; w < gather.windows.size(); ++w) {
    const auto& window = gather.windows[w];
    text += fmt::format("    const {} place{} = {} + i{} * {} + i{} * {};\n", index, w, window.origin,
                        window.position, window.step, window.tap, window.dilation);
    inside += fmt::format(" && place{0} >= 0 && place{0} < {1}", w, (window.extent - 1) * window.holes + 1);
    if (window.holes > 1) inside += fmt::format(" && place{} % {} == 0", w, window.holes);
    at += fmt::format(" + place{} / {} * {}", w, window.holes, window.stride);
  }
  return text + fmt::format("    gathered[i] = {} ? source[{}] : ({})0;\n  }}\n}}\n", inside, at, type);
}

std::string epilogue_cuda(const Node& convolution, const ConvolutionEpilogue& epilogue) {
  const Shape& shape = convolution.shape;
  const auto feature =
      static_cast<std::size_t>(parse_dim_labels(other_attribute(convolution, "dim_labels")).output_feature);
  std::int64_t apart = 1;
  for (std::size_t d = feature + 1; d < shape.dims.size(); ++d) apart *= shape.dims[d];
  const auto load = [&](const std::string& place) { return load_text(shape.dtype, place); };
  const std::string type = std::string(storage_type(shape.dtype));
  std::string text = fmt::format(
      "// What follows a convolution.\n"
      "extern \"C\" __global__ void __launch_bounds__({0}) epilogue({1}* result, const {1}* bias, const {1}* "
      "addend) {{\n  for (long long i = blockIdx.x * {0}ll + threadIdx.x; i < {2}ll; i += gridDim.x * {0}ll) "
      "{{\n    float value = {3};\n",
      kGatherBlock, type, shape.elements_count(), load("result[i]"));
  if (epilogue.bias)
    text += fmt::format("    value += {};\n",
                        load(fmt::format("bias[i / {}ll % {}ll]", apart, shape.dims[feature])));
  if (epilogue.addend) text += fmt::format("    value += {};\n", load("addend[i]"));
  if (epilogue.relu) text += "    value = value < 0 ? 0 : value;  // NaN stays\n";
  text += fmt::format("    result[i] = {};\n  }}\n}}\n", stored_text(shape.dtype, "value"));
  return text;
}

std::optional<ConvolutionProduct> product_of(const Node& convolution, const Shape& input,
                                             const Shape& kernel) {
  SW_CHECK(convolution.op == Op::kConvolution, "{} is no convolution", convolution.name);
  if (input.elements_count() == 0 || kernel.elements_count() == 0 || convolution.shape.elements_count() == 0)
    return std::nullopt;
  return Builder(convolution, input, kernel).build();
}

}  // namespace stitchwork
