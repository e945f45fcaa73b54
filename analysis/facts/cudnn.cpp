#include "analysis/facts/cudnn.h"

#include <fmt/format.h>

#include "core/graph/window.h"

namespace stitchwork {
namespace {

/// Since cudnnSetConvolutionNdDescriptor is of tensors of at most five dimensions, batch and features
/// included.
constexpr std::size_t kMostSpatial = 3;

std::int64_t extent_of(const Shape& shape, int d) { return shape.dims[static_cast<std::size_t>(d)]; }

Verdict windows_verdict(const Node& node, const Shape& input, const ConvolutionDims& labels) {
  const std::vector<WindowDim> window = window_of(node, static_cast<int>(labels.input_spatial.size()));
  if (window.size() > kMostSpatial)
    return Verdict::no("cudnn.dimensions",
                       fmt::format("cuDNN convolves in at most 3 dimensions, not {}", window.size()));
  if (const auto groups = other_integer(node, "batch_group_count", 1); groups != 1)
    return Verdict::no("cudnn.batch-groups",
                       fmt::format("cuDNN has no groups of the batch, here {}", groups));
  bool reversed = false, straight = false;
  for (std::size_t s = 0; s < window.size(); ++s) {
    const WindowDim& w = window[s];
    if (w.size > 1) (w.reversed ? reversed : straight) = true;
    if (w.base_dilation != 1)
      return Verdict::no("cudnn.base-dilation",
                         fmt::format("cuDNN does not spread the input, here by {}", w.base_dilation));
    // What lies behind the last window is never read: only the number of windows tells of pad_high.
    const std::int64_t extent = extent_of(input, labels.input_spatial[s]) + 2 * w.pad_low,
                       covered = (w.size - 1) * w.window_dilation + 1,
                       windows = extent < covered ? 0 : (extent - covered) / w.stride + 1;
    if (w.pad_low < 0 || windows != extent_of(node.shape, labels.output_spatial[s]))
      return Verdict::no("cudnn.padding", fmt::format("cuDNN pads both sides alike and by no less than 0, "
                                                      "here by {} and {}",
                                                      w.pad_low, w.pad_high));
  }
  if (reversed && straight)
    return Verdict::no("cudnn.reversal", "cuDNN reverses the window in all dimensions or in none");
  return Verdict::yes();
}

}  // namespace

Verdict cudnn_convolves(const Node& node, const Shape& input, const Shape& kernel) {
  const DType type = input.dtype;
  const bool known =
      type == DType::kF64 || type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
  if (!known || kernel.dtype != type || node.shape.dtype != type)
    return Verdict::no("cudnn.types", fmt::format("cuDNN makes no {} of {} and {}", name(node.shape.dtype),
                                                  name(type), name(kernel.dtype)));
  return windows_verdict(node, input, parse_dim_labels(other_attribute(node, "dim_labels")));
}

Verdict cudnn_adds(const Node& node, const Shape& input, const Shape& kernel) {
  Verdict verdict = cudnn_convolves(node, input, kernel);
  if (!verdict) return verdict;
  const ConvolutionDims labels = parse_dim_labels(other_attribute(node, "dim_labels"));
  const std::int64_t groups = other_integer(node, "feature_group_count", 1);
  if (groups > 1 && groups == extent_of(input, labels.input_feature))
    return Verdict::no("cudnn.depthwise", "cuDNN adds to depthwise convolutions for more than a kernel does");
  return verdict;
}

}  // namespace stitchwork
