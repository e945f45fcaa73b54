#include "core/onnx/inputs.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"
#include "core/hlo/npy.h"
#include "core/onnx/questions.h"
#include "core/onnx/tensor.h"
#include "core/onnx/value.h"

namespace stitchwork::onnx_reader {
namespace {

Literal numbers(const std::string& name, std::string_view text, DType dtype,
                const pb::TypeProto_Tensor& type) {
  std::vector<double> values;
  const std::string whole(text);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || end != part.data() + part.size())
      throw Error(fmt::format("--value {}={}: '{}' is no number", name, whole, part),
                  "give numbers separated by commas, or a .npy file");
    values.push_back(value);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  const int rank = type.has_shape() ? type.shape().dim_size() : 1;
  if (rank > 1 || (rank == 0 && values.size() != 1))
    throw Error(fmt::format("--value {}={}: the input has rank {}", name, whole, rank), "give a .npy file");
  Literal literal = Literal::zeros(
      Shape::array(dtype, rank == 0 ? Dims{} : Dims{static_cast<std::int64_t>(values.size())}));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return literal;
}

}  // namespace

const pb::TypeProto_Tensor& tensor_type(const pb::ValueInfoProto& input) {
  const auto& type = input.type();
  if (type.has_sequence_type() || type.has_optional_type() || type.has_map_type() ||
      type.has_sparse_tensor_type())
    throw Error(fmt::format("input '{}' is a {}, which is not supported", input.name(),
                            type.has_sequence_type()   ? "sequence"
                            : type.has_optional_type() ? "optional value"
                            : type.has_map_type()      ? "map"
                                                       : "sparse tensor"));
  if (!type.has_tensor_type()) throw Error(fmt::format("input '{}' has no type", input.name()));
  return type.tensor_type();
}

Shape shape_of(const pb::ValueInfoProto& input, const Sizes& dims) {
  const auto& type = tensor_type(input);
  Shape shape = Shape::array(dtype_of(type.elem_type()), {});
  if (!type.has_shape())
    throw Error(fmt::format("input '{}' has no shape, not even a rank", input.name()),
                "export the model with shapes of its inputs");
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    if (has_size(dim)) {
      if (dim.dim_value() < 0)
        throw Error(fmt::format("input '{}' has dimension {} of size {}", input.name(), i, dim.dim_value()));
      shape.dims.push_back(dim.dim_value());
      continue;
    }
    shape.dims.push_back(dims.at(dimension_name(input, i)));
  }
  return shape;
}

Literal given_value(const pb::ValueInfoProto& input, const std::variant<std::string, Literal>& given,
                    Sizes& dims) {
  const auto& type = tensor_type(input);
  const DType dtype = dtype_of(type.elem_type());
  Literal literal;
  if (const auto* text = std::get_if<std::string>(&given))
    literal = text->ends_with(".npy") ? read_npy(*text) : numbers(input.name(), *text, dtype, type);
  else
    literal = std::get<Literal>(given);
  const auto mismatch = [&](const std::string& wanted) {
    return Error(fmt::format("--value {}: it is {}, the model's input {}", input.name(),
                             to_text(literal.shape), wanted));
  };
  if (literal.shape.dtype != dtype) throw mismatch(std::string(name(dtype)));
  if (type.has_shape() && type.shape().dim_size() != literal.shape.rank())
    throw mismatch(fmt::format("has rank {}", type.shape().dim_size()));
  for (int i = 0; type.has_shape() && i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    const std::int64_t size = literal.shape.dims[static_cast<std::size_t>(i)];
    const std::int64_t wanted =
        has_size(dim) ? dim.dim_value() : dims.try_emplace(dimension_name(input, i), size).first->second;
    if (wanted != size) throw mismatch(fmt::format("has {} in dimension {}", wanted, i));
  }
  return literal;
}

}  // namespace stitchwork::onnx_reader
