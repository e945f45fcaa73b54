// Convolutions.
#include <algorithm>
#include <array>

#include "core/onnx/common.h"
#include "core/onnx/convolution.h"
#include "core/onnx/operators.h"

namespace stitchwork::onnx_reader {

std::string channels_first_labels(std::int64_t spatial, const char* kernel) {
  std::string digits;
  for (std::int64_t i = 0; i < spatial; ++i) digits += static_cast<char>('0' + i);
  return fmt::format("bf{0}_{1}{0}->bf{0}", digits, kernel);
}

std::vector<WindowDim> spatial_window(NodeContext& c, const Dims& spatial, Dims kernel, bool ceil_mode) {
  const std::size_t rank = spatial.size();
  c.check(rank >= 1 && rank <= 9, fmt::format("{} spatial dimensions", rank));
  kernel = c.integers("kernel_shape", std::move(kernel));
  const Dims strides = c.integers("strides", Dims(rank, 1)),
             dilations = c.integers("dilations", Dims(rank, 1));
  const Dims pads = c.integers("pads", Dims(2 * rank, 0));
  const std::string mode = c.text("auto_pad", "NOTSET");
  c.check(
      kernel.size() == rank && strides.size() == rank && dilations.size() == rank && pads.size() == 2 * rank,
      fmt::format("kernel_shape, strides, dilations or pads do not fit {} spatial dimensions", rank));
  c.check_range("kernel_shape", kernel, 1, std::int64_t{1} << 24);
  c.check_range("strides", strides, 1, std::int64_t{1} << 24);
  c.check_range("dilations", dilations, 1, std::int64_t{1} << 24);
  c.check_range("pads", pads, -(std::int64_t{1} << 24), std::int64_t{1} << 24);
  c.check(mode == "NOTSET" || mode == "VALID" || mode == "SAME_UPPER" || mode == "SAME_LOWER",
          fmt::format("auto_pad='{}' is unknown", mode));
  std::vector<WindowDim> window(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    c.check(spatial[i] <= (std::int64_t{1} << 60) / strides[i], "strides of this size do not fit the input");
    WindowDim& w = window[i];
    w.size = kernel[i];
    w.stride = strides[i];
    w.window_dilation = dilations[i];
    const std::int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    if (mode == "NOTSET") {
      w.pad_low = pads[i];
      w.pad_high = pads[i + rank];
    } else if (mode != "VALID") {
      const std::int64_t positions = (spatial[i] + strides[i] - 1) / strides[i];
      const std::int64_t total = std::max<std::int64_t>((positions - 1) * strides[i] + reach - spatial[i], 0);
      w.pad_low = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pad_high = total - w.pad_low;
    }
    if (!ceil_mode) continue;
    // A last window that begins inside the array or its low padding counts, however little it covers.
    const std::int64_t span = spatial[i] + w.pad_low + w.pad_high - reach;
    std::int64_t positions = span < 0 ? 0 : (span + strides[i] - 1) / strides[i] + 1;
    if (positions > 0 && (positions - 1) * strides[i] >= spatial[i] + w.pad_low) --positions;
    if (positions > 0) w.pad_high = (positions - 1) * strides[i] + reach - spatial[i] - w.pad_low;
  }
  return window;
}

namespace {

Dims spatial_dims(NodeContext& c, const Value& x) {
  c.check(x.rank() >= 3, fmt::format("{} has no spatial dimensions", to_text(x.shape)));
  return Dims(x.dims().begin() + 2, x.dims().end());
}

}  // namespace

Value convolved(NodeContext& c, const Value& x, const Value& kernel) {
  const Dims spatial = spatial_dims(c, x);
  c.check(kernel.rank() == x.rank(),
          fmt::format("kernel {} for {}", to_text(kernel.shape), to_text(x.shape)));
  ConvolutionSpec spec;
  spec.window = spatial_window(c, spatial, Dims(kernel.dims().begin() + 2, kernel.dims().end()));
  spec.groups = c.integer("group", 1);
  c.check_range("group", {spec.groups}, 1, std::int64_t{1} << 20);
  spec.labels = channels_first_labels(static_cast<std::int64_t>(spatial.size()));
  return c.b.convolution(x, kernel, spec);
}

namespace {

using Values = std::vector<Value>;

Value with_bias(NodeContext& c, const Value& y) {
  if (!c.has(2)) return y;
  const Value& bias = c.in(2);
  c.check(bias.dims() == Dims{y.dim(1)},
          fmt::format("bias {} for {} channels", to_text(bias.shape), y.dim(1)));
  return c.b.add(y, c.b.reshape(bias, joined({y.dim(1)}, Dims(y.dims().size() - 2, 1))));
}

Values lower_conv(NodeContext& c) { return {with_bias(c, convolved(c, c.in(0), c.in(1)))}; }

/// Pads of a transposed convolution that gives `wanted` elements, or that auto_pad asks for.
void fit_output(NodeContext& c, WindowDim& w, std::int64_t extent, std::int64_t extra, std::int64_t wanted,
                bool upper) {
  const std::int64_t total = w.stride * (extent - 1) + extra + (w.size - 1) * w.window_dilation + 1 - wanted;
  // One element beyond the last window is at the end (ONNX's node test); where more of them go, or one under
  // SAME_UPPER, ONNX does not say.
  c.check(total >= (upper ? 0 : -1),
          fmt::format("an output of {} is more than strides and output_padding give", wanted));
  w.pad_low = upper ? total / 2 : (total + 1) / 2;
  w.pad_high = total - w.pad_low;
}

/// As a convolution of the input with holes between its elements by the turned kernel.
Values lower_conv_transpose(NodeContext& c) {
  Builder& b = c.b;
  const Value &x = c.in(0), &given = c.in(1);
  const Dims spatial = spatial_dims(c, x);
  const std::size_t rank = spatial.size();
  c.check(given.rank() == x.rank(), fmt::format("kernel {} for {}", to_text(given.shape), to_text(x.shape)));
  const std::string mode = c.text("auto_pad", "NOTSET");
  const Dims kernel_dims(given.dims().begin() + 2, given.dims().end());
  std::vector<WindowDim> window = spatial_window(c, spatial, kernel_dims);
  const Dims extra = c.integers("output_padding", Dims(rank, 0)), shape = c.integers("output_shape");
  c.check(extra.size() == rank && (shape.empty() || shape.size() == rank),
          "output_padding or output_shape do not fit");
  c.check_range("output_padding", extra, 0, std::int64_t{1} << 24);
  c.check_range("output_shape", shape, 0, std::int64_t{1} << 40);
  for (std::size_t i = 0; i < rank; ++i) {
    WindowDim& w = window[i];
    if (!shape.empty() || mode.starts_with("SAME"))
      fit_output(c, w, spatial[i], extra[i], shape.empty() ? spatial[i] * w.stride : shape[i],
                 mode == "SAME_UPPER");
    const std::int64_t reach = (w.size - 1) * w.window_dilation;
    w.base_dilation = std::exchange(w.stride, 1);
    w.pad_low = reach - w.pad_low;
    w.pad_high = reach - w.pad_high + extra[i];
    w.reversed = true;
  }
  ConvolutionSpec spec;
  spec.groups = c.integer("group", 1);
  spec.window = std::move(window);
  spec.labels = channels_first_labels(static_cast<std::int64_t>(rank), "io");
  // Groups lie in the kernel's input channels, [g * in, out, ...]; HLO wants them in its output channels.
  const std::int64_t groups = spec.groups;
  c.check_range("group", {groups}, 1, std::int64_t{1} << 20);
  c.check(given.dim(0) % groups == 0 && given.dim(0) == x.dim(1),
          fmt::format("kernel {} in {} groups for {}", to_text(given.shape), groups, to_text(x.shape)));
  const std::int64_t in = given.dim(0) / groups, out = given.dim(1);
  const Value split = b.reshape(given, joined({groups, in, out}, kernel_dims));
  const Value moved = b.transpose(split, joined({1, 0, 2}, counted(3, static_cast<std::int64_t>(rank))));
  const Value kernel = b.reshape(moved, joined({in, groups * out}, kernel_dims));
  return {with_bias(c, b.convolution(x, groups == 1 ? given : kernel, spec))};
}

constexpr std::array kConvolutionRows = {
    OperatorRow{"Conv", 7, lower_conv},
    OperatorRow{"ConvTranspose", 7, lower_conv_transpose},
};

}  // namespace

std::span<const OperatorRow> convolution_operators() { return kConvolutionRows; }

}  // namespace stitchwork::onnx_reader
