#include "core/onnx/questions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "core/onnx/tensor.h"

namespace stitchwork::onnx_reader {
namespace {

/// A size to begin with, by what exporters call dimensions; one whose name tells nothing is a batch where it
/// is the first.
std::string usual_size(std::string name, int axis) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("batch")) return "1";
  if (has("seq") || has("len") || has("time") || has("token")) return "128";
  if (has("height") || has("width")) return "224";
  return axis == 0 ? "1" : "16";
}

}  // namespace

std::string dimension_name(const pb::ValueInfoProto& input, int axis) {
  const auto& dim = input.type().tensor_type().shape().dim(axis);
  return dim.has_dim_param() && !dim.dim_param().empty() ? dim.dim_param()
                                                         : fmt::format("{}[{}]", input.name(), axis);
}

bool has_size(const pb::TensorShapeProto::Dimension& dim) {
  return dim.has_dim_value() && dim.dim_value() != -1;
}

std::vector<OnnxQuestion> open_dimensions(const std::vector<const pb::ValueInfoProto*>& inputs,
                                          const std::map<std::string, std::int64_t>& sizes) {
  std::vector<OnnxQuestion> open;
  for (const pb::ValueInfoProto* input : inputs) {
    const auto& shape = input->type().tensor_type().shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      const std::string name = dimension_name(*input, i);
      if (has_size(shape.dim(i)) || sizes.contains(name)) continue;
      const std::string place = fmt::format("{}[{}]", input->name(), i);
      if (const auto known = std::ranges::find(open, name, &OnnxQuestion::name); known != open.end())
        known->of += ", " + place;
      else
        open.push_back({OnnxQuestion::Kind::kDimension, name, place, usual_size(name, i)});
    }
  }
  return open;
}

OnnxQuestion value_question(const pb::ValueInfoProto& input,
                            const std::map<std::string, std::int64_t>& sizes) {
  const auto& type = input.type().tensor_type();
  std::vector<std::string> dims;
  std::int64_t elements = 1;  // -1: not known
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    const std::string symbol = dimension_name(input, i);
    const auto bound = sizes.find(symbol);
    const std::int64_t size = has_size(dim) ? dim.dim_value() : bound == sizes.end() ? -1 : bound->second;
    dims.push_back(size < 0 ? symbol : std::to_string(size));
    elements = size < 0 || elements < 0 || dims.size() > 1 ? -1 : size;
  }
  constexpr std::int64_t kMostTyped = 16;  // more is a file's business
  std::string ones;
  for (std::int64_t i = 0; i < elements && elements <= kMostTyped; ++i) ones += i == 0 ? "1" : ",1";
  return {OnnxQuestion::Kind::kValue, input.name(),
          fmt::format("{}[{}]", name(dtype_of(type.elem_type())), fmt::join(dims, ",")), ones};
}

}  // namespace stitchwork::onnx_reader
