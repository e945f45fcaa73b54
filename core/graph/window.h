// Attributes kept as HLO text: the window and dim_labels of convolution and reduce-window, integers, lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace stitchwork {

struct WindowDim {
  std::int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0, base_dilation = 1, window_dilation = 1;
  bool reversed = false;
  bool operator==(const WindowDim&) const = default;
};

/// `{size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=.. rhs_dilate=.. rhs_reversal=0x1}`, braces optional; "{}" is
/// a window without dimensions. Throws Error where the text is not a window.
std::vector<WindowDim> parse_window(std::string_view text);

/// Number of window positions along a dimension of `extent` elements.
std::int64_t window_positions(std::int64_t extent, const WindowDim& window);

/// dim_labels=b01f_01io->b01f: which dimension of input, kernel and output is batch, feature and spatial.
struct ConvolutionDims {
  int input_batch = 0, input_feature = 0, kernel_input_feature = 0, kernel_output_feature = 0,
      output_batch = 0, output_feature = 0;
  std::vector<int> input_spatial, kernel_spatial, output_spatial;
};
ConvolutionDims parse_dim_labels(std::string_view text);

/// The dimension numbers of a scatter.
struct ScatterDims {
  std::vector<std::int64_t> update_window, inserted_window, to_operand, input_batching, indices_batching;
  std::int64_t index_vector_dim = 0;
};
ScatterDims scatter_dims(const Node& node);

/// The text of attribute `key` among node.attrs.other, "" if absent.
std::string_view other_attribute(const Node& node, std::string_view key);
/// An integer among node.attrs.other, `fallback` if absent. Throws Error if it is not an integer.
std::int64_t other_integer(const Node& node, std::string_view key, std::int64_t fallback);

/// The same of a number.
double other_number(const Node& node, std::string_view key, double fallback);

/// A list `{0,1}` among node.attrs.other, empty if absent.
std::vector<std::int64_t> other_integers(const Node& node, std::string_view key);

/// What a custom call calls, without quotes; "" if its text does not say.
std::string_view custom_call_target(const Node& node);

/// Input index under window element `tap` at window position `position`, or -1 in padding or a dilation's
/// hole.
std::int64_t window_input_index(std::int64_t position, std::int64_t tap, std::int64_t extent,
                                const WindowDim& window);
/// Advances a row-major multi-index within `dims`; false after the last one.
bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& dims);

/// Window of a reduce-window or select-and-scatter over `rank` dimensions; absent means all of size 1.
std::vector<WindowDim> window_of(const Node& node, int rank);

}  // namespace stitchwork
