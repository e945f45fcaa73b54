#include "core/graph/window.h"

#include <charconv>

#include "core/base/error.h"

namespace stitchwork {
namespace {

std::int64_t integer(std::string_view text, std::string_view whole) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw Error(fmt::format("'{}' is not an integer in '{}'", text, whole));
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

void set_field(WindowDim& dim, std::string_view key, std::string_view value, std::string_view whole) {
  if (key == "pad") {
    const auto at = value.find('_');
    dim.pad_low = integer(value.substr(0, at), whole);
    dim.pad_high = at == std::string_view::npos ? dim.pad_low : integer(value.substr(at + 1), whole);
    return;
  }
  const std::int64_t number = integer(value, whole);
  if (key == "rhs_reversal") {
    dim.reversed = number != 0;
    return;
  }
  if (number < 1) throw Error(fmt::format("{} must be positive in window '{}'", key, whole));
  if (key == "size")
    dim.size = number;
  else if (key == "stride")
    dim.stride = number;
  else if (key == "lhs_dilate")
    dim.base_dilation = number;
  else if (key == "rhs_dilate")
    dim.window_dilation = number;
  else
    throw Error(fmt::format("unknown field '{}' in window '{}'", key, whole));
}

/// Position of every label of one operand: batch and feature characters, then spatial digits.
void read_labels(std::string_view labels, char first, int& first_at, char second, int& second_at,
                 std::vector<int>& spatial, std::string_view whole) {
  first_at = second_at = -1;
  spatial.assign(labels.size() < 2 ? 0 : labels.size() - 2, -1);
  for (int i = 0; i < static_cast<int>(labels.size()); ++i) {
    const char label = labels[static_cast<std::size_t>(i)];
    const auto digit = static_cast<std::size_t>(label - '0');
    int* slot = label == first           ? &first_at
                : label == second        ? &second_at
                : digit < spatial.size() ? &spatial[digit]
                                         : nullptr;
    if (slot == nullptr || *slot != -1)
      throw Error(fmt::format("label '{}' is unknown or repeated in dim_labels '{}'", label, whole));
    *slot = i;
  }
  if (first_at < 0 || second_at < 0)
    throw Error(fmt::format("dim_labels '{}' lacks '{}' or '{}'", whole, first, second));
}

}  // namespace

std::vector<WindowDim> parse_window(std::string_view text) {
  const std::string_view whole = text;
  if (text.size() >= 2 && text.front() == '{' && text.back() == '}') text = text.substr(1, text.size() - 2);
  std::vector<WindowDim> window;
  for (std::string_view field : split(text, ' ')) {
    if (field.empty()) continue;
    const auto equals = field.find('=');
    if (equals == std::string_view::npos)
      throw Error(fmt::format("'{}' is not key=value in window '{}'", field, whole));
    const auto values = split(field.substr(equals + 1), 'x');
    if (window.empty()) window.resize(values.size());
    if (window.size() != values.size())
      throw Error(fmt::format("window '{}' gives {} values for {}, {} before", whole, values.size(),
                              field.substr(0, equals), window.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      set_field(window[i], field.substr(0, equals), values[i], whole);
  }
  return window;
}

std::int64_t window_positions(std::int64_t extent, const WindowDim& window) {
  const std::int64_t base =
      (extent == 0 ? 0 : (extent - 1) * window.base_dilation + 1) + window.pad_low + window.pad_high;
  const std::int64_t reach = (window.size - 1) * window.window_dilation + 1;
  return base < reach ? 0 : (base - reach) / window.stride + 1;
}

ConvolutionDims parse_dim_labels(std::string_view text) {
  const auto underscore = text.find('_');
  const auto arrow = text.find("->");
  if (underscore == std::string_view::npos || arrow == std::string_view::npos || arrow < underscore)
    throw Error(fmt::format("dim_labels '{}' is not INPUT_KERNEL->OUTPUT", text));
  ConvolutionDims dims;
  read_labels(text.substr(0, underscore), 'b', dims.input_batch, 'f', dims.input_feature, dims.input_spatial,
              text);
  read_labels(text.substr(underscore + 1, arrow - underscore - 1), 'i', dims.kernel_input_feature, 'o',
              dims.kernel_output_feature, dims.kernel_spatial, text);
  read_labels(text.substr(arrow + 2), 'b', dims.output_batch, 'f', dims.output_feature, dims.output_spatial,
              text);
  if (dims.input_spatial.size() != dims.kernel_spatial.size() ||
      dims.input_spatial.size() != dims.output_spatial.size())
    throw Error(fmt::format("dim_labels '{}' differ in their number of spatial dimensions", text));
  return dims;
}

ScatterDims scatter_dims(const Node& node) {
  return {other_integers(node, "update_window_dims"),
          other_integers(node, "inserted_window_dims"),
          other_integers(node, "scatter_dims_to_operand_dims"),
          other_integers(node, "input_batching_dims"),
          other_integers(node, "scatter_indices_batching_dims"),
          other_integer(node, "index_vector_dim", 0)};
}

std::string_view other_attribute(const Node& node, std::string_view key) {
  for (const auto& [name, value] : node.attrs.other)
    if (name == key) return value;
  return {};
}

std::int64_t other_integer(const Node& node, std::string_view key, std::int64_t fallback) {
  const std::string_view text = other_attribute(node, key);
  return text.empty() ? fallback : integer(text, fmt::format("{}={}", key, text));
}

double other_number(const Node& node, std::string_view key, double fallback) {
  const std::string_view text = other_attribute(node, key);
  if (text.empty()) return fallback;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw Error(fmt::format("'{}' is not a number in '{}={}'", text, key, text));
  return value;
}

std::vector<std::int64_t> other_integers(const Node& node, std::string_view key) {
  std::string_view text = other_attribute(node, key);
  const std::string whole = fmt::format("{}={}", key, text);
  if (text.size() >= 2 && text.front() == '{' && text.back() == '}') text = text.substr(1, text.size() - 2);
  std::vector<std::int64_t> values;
  if (text.empty()) return values;
  for (std::string_view part : split(text, ',')) {
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    values.push_back(integer(part, whole));
  }
  return values;
}

std::string_view custom_call_target(const Node& node) {
  const std::string_view text = other_attribute(node, "custom_call_target");
  return text.size() < 2 ? std::string_view() : text.substr(1, text.size() - 2);
}

std::int64_t window_input_index(std::int64_t position, std::int64_t tap, std::int64_t extent,
                                const WindowDim& window) {
  const std::int64_t at = position * window.stride + tap * window.window_dilation - window.pad_low;
  if (at < 0 || at % window.base_dilation != 0 || at / window.base_dilation >= extent) return -1;
  return at / window.base_dilation;
}

bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& dims) {
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

std::vector<WindowDim> window_of(const Node& node, int rank) {
  const std::string_view text = other_attribute(node, "window");
  std::vector<WindowDim> window = text.empty() ? std::vector<WindowDim>{} : parse_window(text);
  if (window.empty()) window.resize(static_cast<std::size_t>(rank));
  if (static_cast<int>(window.size()) != rank)
    throw Error(fmt::format("window '{}' has {} dimensions, {} are needed", text, window.size(), rank));
  return window;
}

}  // namespace stitchwork
