// Convolutions: conv-as-dot, conv-merge, conv-scale.
#include <algorithm>

#include "core/graph/window.h"
#include "core/substitute/editor.h"
#include "core/substitute/families.h"
#include "core/substitute/scale.h"
#include "core/substitute/view.h"

namespace stitchwork::rewriting {
namespace {

/// The dimension numbers of a convolution of floats without groups; nullopt for other ops.
std::optional<ConvolutionDims> plain_convolution(const View& view, const Node& node) {
  if (node.op != Op::kConvolution || !is_real(node.shape.dtype)) return std::nullopt;
  for (const std::size_t side : {0, 1})
    if (view.operand(node, side).shape.dtype != node.shape.dtype) return std::nullopt;
  if (other_integer(node, "feature_group_count", 1) != 1 || other_integer(node, "batch_group_count", 1) != 1)
    return std::nullopt;
  return parse_dim_labels(other_attribute(node, "dim_labels"));
}

bool is_pointwise(const Node& node, std::size_t spatial) {
  const std::vector<WindowDim> window = window_of(node, static_cast<int>(spatial));
  return std::ranges::all_of(window, [](const WindowDim& w) {
    return w.size == 1 && w.stride == 1 && w.pad_low == 0 && w.pad_high == 0 && w.base_dilation == 1;
  });
}

}  // namespace

// ---- conv-as-dot

std::optional<Match> find_conv_as_dot(const View& view, NodeId place) {
  const Node& node = view.node(place);
  const std::optional<ConvolutionDims> dims = plain_convolution(view, node);
  if (!dims || !is_pointwise(node, dims->input_spatial.size())) return std::nullopt;
  return Match{{place}};
}

void apply_conv_as_dot(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& node = view.node(match.at[0]);
  const ConvolutionDims dims = *plain_convolution(view, node);
  // Numbers: batch 0, input features 1, output features 2, spatial dimensions from 3.
  const auto at = [](std::vector<int>& labels, int dim) -> int& {
    return labels[static_cast<std::size_t>(dim)];
  };
  std::vector<int> input(static_cast<std::size_t>(node.shape.rank())), output = input;
  at(input, dims.input_batch) = at(output, dims.output_batch) = 0;
  at(input, dims.input_feature) = 1;
  at(output, dims.output_feature) = 2;
  for (std::size_t s = 0; s < dims.input_spatial.size(); ++s)
    at(input, dims.input_spatial[s]) = at(output, dims.output_spatial[s]) = 3 + static_cast<int>(s);
  const Dims& kernel = view.operand(node, 1).shape.dims;
  const bool in_first = dims.kernel_input_feature < dims.kernel_output_feature;
  const int first = in_first ? dims.kernel_input_feature : dims.kernel_output_feature,
            second = in_first ? dims.kernel_output_feature : dims.kernel_input_feature;
  const NodeId matrix = editor.emit().reshape(
      node.operands[1], {kernel[static_cast<std::size_t>(first)], kernel[static_cast<std::size_t>(second)]});
  Node like;
  like.shape.dtype = node.shape.dtype;
  if (const std::string_view precision = other_attribute(node, "operand_precision"); !precision.empty())
    like.attrs.other = {{"operand_precision", std::string(precision)}};
  const Labelled x{node.operands[0], input},
      w{matrix, in_first ? std::vector<int>{1, 2} : std::vector<int>{2, 1}};
  editor.replace(node.id, editor.product(x, w, output, like));
}

// ---- conv-merge

namespace {

std::vector<NodeId> merged_convolutions(const View& view, NodeId place) {
  const Node& node = view.node(place);
  if (!plain_convolution(view, node)) return {};
  std::vector<NodeId> result{place};
  for (const NodeId id : view.readers(node.operands[0])) {
    const Node& other = view.node(id);
    if (id == place || other.op != Op::kConvolution || other.operands[0] != node.operands[0] ||
        other.attrs.other != node.attrs.other || other.shape.dtype != node.shape.dtype ||
        !plain_convolution(view, other))
      continue;
    if (std::ranges::none_of(
            result, [&](NodeId known) { return view.descends(std::max(id, known), std::min(id, known)); }))
      result.push_back(id);
  }
  return result;
}

}  // namespace

std::optional<Match> find_conv_merge(const View& view, NodeId place) {
  std::vector<NodeId> merged = merged_convolutions(view, place);
  if (merged.size() < 2) return std::nullopt;
  return Match{std::move(merged)};
}

void apply_conv_merge(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Node& first = view.node(match.at[0]);
  const ConvolutionDims dims = *plain_convolution(view, first);
  const auto out = static_cast<std::size_t>(dims.kernel_output_feature),
             feature = static_cast<std::size_t>(dims.output_feature);
  std::vector<NodeId> kernels;
  for (const NodeId id : match.at) kernels.push_back(view.node(id).operands[1]);
  Dims all = first.shape.dims;
  const NodeId appended = editor.concatenate(kernels, out);
  all[feature] = editor.dims(appended)[out];
  const NodeId merged = editor.like(first, {first.operands[0], appended}, all);
  std::int64_t offset = 0;
  for (const NodeId id : match.at) {
    const std::int64_t extent = view.node(id).shape.dims[feature];
    editor.replace(id, editor.slice(merged, feature, offset, offset + extent));
    offset += extent;
  }
}

// ---- conv-scale

namespace {

std::optional<Scaled> scale_behind_convolution(const View& view, const Node& node) {
  if (node.op != Op::kMultiply && node.op != Op::kDivide) return std::nullopt;
  for (const NodeId id : node.operands) {
    const Node& convolution = view.node(id);
    const std::optional<ConvolutionDims> dims = plain_convolution(view, convolution);
    if (!dims || !view.only_read_by(id, node.id)) continue;
    std::optional<Scaled> found = scaled(view, node, [&](int axis) { return axis == dims->output_feature; });
    if (found && found->value == id) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Match> find_conv_scale(const View& view, NodeId place) {
  const std::optional<Scaled> found = scale_behind_convolution(view, view.node(place));
  if (!found) return std::nullopt;
  return Match{{place, found->value}};
}

void apply_conv_scale(Editor& editor, const Match& match) {
  const View& view = editor.view();
  const Scaled found = *scale_behind_convolution(view, view.node(match.at[0]));
  const Node& convolution = view.node(found.value);
  const ConvolutionDims dims = *plain_convolution(view, convolution);
  std::vector<int> axes;
  for (const int axis : found.scale.axes) axes.push_back(axis < 0 ? -1 : dims.kernel_output_feature);
  const NodeId kernel = apply_scale(editor, found, convolution.operands[1], axes);
  editor.replace(match.at[0],
                 editor.like(convolution, {convolution.operands[0], kernel}, convolution.shape.dims));
}

}  // namespace stitchwork::rewriting
