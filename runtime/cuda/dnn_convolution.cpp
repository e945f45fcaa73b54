#include "runtime/cuda/dnn_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/facts/cudnn.h"
#include "core/graph/window.h"
#include "core/index/strided.h"

namespace stitchwork::cuda {
namespace {

using Dims = std::vector<std::int64_t>;

/// cudnnSetConvolutionNdDescriptor: of tensors of at least four dimensions.
constexpr std::size_t kFewestSpatial = 2;

std::int64_t at(const Dims& dims, int d) { return dims[static_cast<std::size_t>(d)]; }

class Builder {
 public:
  Builder(const Node& node, const Shape& input, const Shape& kernel, bool features_last)
      : node_(node),
        input_(input),
        kernel_(kernel),
        labels_(parse_dim_labels(other_attribute(node, "dim_labels"))),
        window_(window_of(node, static_cast<int>(labels_.input_spatial.size()))),
        in_front_(window_.size() < kFewestSpatial ? kFewestSpatial - window_.size() : 0) {
    made_.dtype = input.dtype;
    made_.features_last = features_last;
  }

  DnnTerms build() {
    Verdict verdict = possible();
    if (!verdict) return {std::move(verdict), {}};
    made_.groups = static_cast<int>(other_integer(node_, "feature_group_count", 1));
    made_.input = tensor(input_, labels_.input_batch, labels_.input_feature, labels_.input_spatial);
    made_.output = tensor(node_.shape, labels_.output_batch, labels_.output_feature, labels_.output_spatial);
    order_kernel();
    made_.pads.assign(in_front_, 0);
    made_.strides.assign(in_front_, 1);
    made_.dilations.assign(in_front_, 1);
    for (const WindowDim& w : window_) {
      made_.pads.push_back(narrow(w.pad_low));
      made_.strides.push_back(narrow(w.stride));
      made_.dilations.push_back(narrow(w.window_dilation));
      made_.flipped = made_.flipped || (w.reversed && w.size > 1);
    }
    if (!narrow_enough_)
      return {Verdict::no("cudnn.extents", "an extent or a stride is more than 2147483647"), {}};
    return {Verdict::yes("cudnn"), std::move(made_)};
  }

 private:
  Verdict possible() const {
    Verdict verdict = cudnn_convolves(node_, input_, kernel_);
    return verdict && made_.features_last ? lies_features_last() : verdict;
  }

  Verdict lies_features_last() const {
    const auto lies = [](int batch, int feature, const std::vector<int>& spatial) {
      return batch == 0 && feature == static_cast<int>(spatial.size()) + 1 &&
             std::is_sorted(spatial.begin(), spatial.end());
    };
    if (lies(labels_.input_batch, labels_.input_feature, labels_.input_spatial) &&
        lies(labels_.output_batch, labels_.output_feature, labels_.output_spatial))
      return Verdict::yes();
    return Verdict::no("cudnn.features-last", "input and output do not both have batch first, features last");
  }

  int narrow(std::int64_t value) {
    narrow_enough_ = narrow_enough_ && value <= std::numeric_limits<int>::max();
    return static_cast<int>(value);
  }

  /// Dimensions of one element in front of the spatial ones, as they would lie.
  DnnConvolution::Tensor tensor(const Shape& shape, int batch, int feature, const std::vector<int>& spatial) {
    const Dims strides = strides_of(shape.dims);
    DnnConvolution::Tensor result;
    const auto add = [&](std::int64_t extent, std::int64_t stride) {
      result.dims.push_back(narrow(extent));
      result.strides.push_back(narrow(stride));
    };
    add(at(shape.dims, batch), at(strides, batch));
    add(at(shape.dims, feature), at(strides, feature));
    const std::int64_t one = !spatial.empty()      ? at(shape.dims, spatial[0]) * at(strides, spatial[0])
                             : made_.features_last ? at(shape.dims, feature)
                                                   : 1;
    for (std::size_t s = 0; s < in_front_; ++s) add(1, one);
    for (const int d : spatial) add(at(shape.dims, d), at(strides, d));
    return result;
  }

  void order_kernel() {
    const Dims strides = strides_of(kernel_.dims);
    made_.kernel = {narrow(at(kernel_.dims, labels_.kernel_output_feature)),
                    narrow(at(kernel_.dims, labels_.kernel_input_feature))};
    made_.kernel.insert(made_.kernel.end(), in_front_, 1);
    for (const int d : labels_.kernel_spatial) made_.kernel.push_back(narrow(at(kernel_.dims, d)));
    std::vector<int> order = labels_.kernel_spatial;
    order.insert(made_.features_last ? order.end() : order.begin(), labels_.kernel_input_feature);
    order.insert(order.begin(), labels_.kernel_output_feature);
    for (const int d : order) made_.weights.axes.push_back({at(kernel_.dims, d), at(strides, d)});
  }

  const Node& node_;
  const Shape &input_, &kernel_;
  ConvolutionDims labels_;
  std::vector<WindowDim> window_;
  std::size_t in_front_;  ///< spatial dimensions of one element that cuDNN has beside ours
  bool narrow_enough_ = true;
  DnnConvolution made_;
};

}  // namespace

DnnTerms dnn_terms(const Node& convolution, const Shape& input, const Shape& kernel, bool features_last) {
  return Builder(convolution, input, kernel, features_last).build();
}

}  // namespace stitchwork::cuda
