#include "core/onnx/node_context.h"

#include <algorithm>

#include "core/onnx/open_model.h"
#include "core/onnx/tensor.h"

namespace stitchwork::onnx_reader {

NodeContext::NodeContext(Builder& builder, SubgraphReader& subgraphs, const pb::NodeProto& node,
                         std::int64_t version_in_force, std::vector<Value> inputs)
    : b(builder),
      version(version_in_force),
      subgraphs_(subgraphs),
      node_(node),
      inputs_(std::move(inputs)),
      used_inputs_(inputs_.size(), false) {}

bool NodeContext::has(int i) const { return i < inputs() && inputs_[static_cast<std::size_t>(i)].present(); }

const Value& NodeContext::in_any(int i) {
  if (!has(i)) refuse(fmt::format("input {} is missing", i));
  used_inputs_[static_cast<std::size_t>(i)] = true;
  return inputs_[static_cast<std::size_t>(i)];
}

const Value& NodeContext::in(int i) {
  const Value& value = in_any(i);
  if (value.kind != Value::Kind::kArray) refuse(fmt::format("input {} is a sequence, a tensor is needed", i));
  return value;
}

std::vector<Value> NodeContext::all_inputs() {
  std::vector<Value> values;
  for (int i = 0; i < inputs(); ++i) values.push_back(in(i));
  return values;
}

void NodeContext::ignore_input(int i) {
  if (i < inputs()) used_inputs_[static_cast<std::size_t>(i)] = true;
}

const Literal& NodeContext::known(int i) {
  const Value& value = in(i);
  if (value.known()) return *value.constant;
  const std::string& name = node_.input(i);
  if (value.depends_on.empty())
    refuse(
        fmt::format("input {} ('{}') decides the shape of the result, and its value is computed in the model",
                    i, name),
        "shapes must be known when a model is read");
  throw OpenModel(
      Error(fmt::format(
                "input {} ('{}') decides the shape of the result, and depends on the model's input '{}'", i,
                name, value.depends_on),
            fmt::format("give that input's value: --value {0}=7, --value {0}=2,3 or --value {0}=FILE.npy",
                        value.depends_on)),
      {{OnnxQuestion::Kind::kValue, value.depends_on, {}, {}}});
}

Dims NodeContext::known_integers(int i) {
  const Literal& literal = known(i);
  check(!is_floating(literal.shape.dtype),
        fmt::format("input {} is {}, integers are needed", i, to_text(literal.shape)));
  check(literal.shape.rank() <= 1,
        fmt::format("input {} is {}, a list is needed", i, to_text(literal.shape)));
  Dims values;
  for (std::int64_t e = 0; e < literal.shape.elements_count(); ++e) values.push_back(literal.get_int(e));
  return values;
}

std::int64_t NodeContext::known_integer(int i) {
  const Dims values = known_integers(i);
  check(values.size() == 1, fmt::format("input {} has {} elements, one is needed", i, values.size()));
  return values[0];
}

std::vector<double> NodeContext::known_numbers(int i) {
  const Literal& literal = known(i);
  std::vector<double> values;
  for (std::int64_t e = 0; e < literal.shape.elements_count(); ++e) values.push_back(literal.get_double(e));
  return values;
}

bool NodeContext::given(std::string_view name) const {
  return std::ranges::any_of(node_.attribute(), [&](const auto& a) { return a.name() == name; });
}

std::vector<std::string> NodeContext::given_attributes() const {
  std::vector<std::string> names;
  for (const auto& attribute : node_.attribute()) names.push_back(attribute.name());
  return names;
}

const pb::AttributeProto* NodeContext::find(std::string_view name, pb::AttributeProto::AttributeType type) {
  for (const pb::AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() != name) continue;
    used_attributes_.insert(attribute.name());
    if (attribute.type() != type)
      refuse(fmt::format("attribute {} has type {}, {} is needed", name,
                         pb::AttributeProto::AttributeType_Name(attribute.type()),
                         pb::AttributeProto::AttributeType_Name(type)));
    return &attribute;
  }
  return nullptr;
}

std::int64_t NodeContext::any_integer(std::string_view name, std::int64_t otherwise) {
  const auto* attribute = find(name, pb::AttributeProto::INT);
  return attribute != nullptr ? attribute->i() : otherwise;
}

std::int64_t NodeContext::integer(std::string_view name, std::int64_t otherwise) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  const std::int64_t value = any_integer(name, otherwise);
  check_range(fmt::format("attribute {}", name), {value}, -kLargest, kLargest);
  return value;
}

std::int64_t NodeContext::integer(std::string_view name) {
  if (!given(name)) refuse(fmt::format("attribute {} is missing", name));
  return integer(name, 0);
}

double NodeContext::number(std::string_view name, double otherwise) {
  const auto* attribute = find(name, pb::AttributeProto::FLOAT);
  return attribute != nullptr ? static_cast<double>(attribute->f()) : otherwise;
}

std::string NodeContext::text(std::string_view name, std::string otherwise) {
  const auto* attribute = find(name, pb::AttributeProto::STRING);
  if (attribute != nullptr) otherwise = attribute->s();
  return otherwise;
}

std::vector<std::string> NodeContext::texts(std::string_view name, std::vector<std::string> otherwise) {
  const auto* attribute = find(name, pb::AttributeProto::STRINGS);
  return attribute != nullptr
             ? std::vector<std::string>(attribute->strings().begin(), attribute->strings().end())
             : std::move(otherwise);
}

Dims NodeContext::integers(std::string_view name, Dims otherwise) {
  const auto* attribute = find(name, pb::AttributeProto::INTS);
  return attribute != nullptr ? Dims(attribute->ints().begin(), attribute->ints().end())
                              : std::move(otherwise);
}

std::vector<double> NodeContext::numbers(std::string_view name, std::vector<double> otherwise) {
  const auto* attribute = find(name, pb::AttributeProto::FLOATS);
  return attribute != nullptr ? std::vector<double>(attribute->floats().begin(), attribute->floats().end())
                              : std::move(otherwise);
}

Value NodeContext::tensor(std::string_view name) {
  const auto* attribute = find(name, pb::AttributeProto::TENSOR);
  if (attribute == nullptr) refuse(fmt::format("attribute {} is missing", name));
  return Builder::known(subgraphs_.tensor(attribute->t()));
}

DType NodeContext::dtype(std::string_view name, DType otherwise) {
  if (!given(name)) return otherwise;
  const std::int64_t type = integer(name);
  check_range(name, {type}, 0, 1000);
  return dtype_of(static_cast<std::int32_t>(type));
}

const pb::GraphProto& NodeContext::graph(std::string_view name) {
  const auto* attribute = find(name, pb::AttributeProto::GRAPH);
  if (attribute == nullptr) refuse(fmt::format("attribute {} is missing", name));
  return attribute->g();
}

std::int64_t NodeContext::axis(std::int64_t value, int rank, std::string_view name) const {
  if (value < -rank || value >= rank)
    refuse(fmt::format("{}={} is no dimension of a tensor of rank {}", name, value, rank));
  return value < 0 ? value + rank : value;
}

Dims NodeContext::axes(const Dims& values, int rank, std::string_view name) const {
  Dims result;
  for (const std::int64_t value : values) {
    result.push_back(axis(value, rank, name));
    if (std::ranges::count(result, result.back()) > 1)
      refuse(fmt::format("{} names dimension {} twice", name, result.back()));
  }
  return result;
}

void NodeContext::check_range(std::string_view name, const Dims& values, std::int64_t low,
                              std::int64_t high) const {
  for (const std::int64_t value : values)
    if (value < low || value > high)
      refuse(fmt::format("{} has {}, outside [{}, {}]", name, value, low, high));
}

void NodeContext::refuse(const std::string& message, const std::string& hint) const {
  throw Error(message, hint);
}

void NodeContext::check_all_used() const {
  for (const auto& attribute : node_.attribute())
    if (!used_attributes_.contains(attribute.name()))
      refuse(fmt::format("attribute {} is not supported in operator set {}", attribute.name(), version));
  for (int i = 0; i < inputs(); ++i)
    if (has(i) && !used_inputs_[static_cast<std::size_t>(i)])
      refuse(fmt::format("input {} ('{}') is not supported in operator set {}", i, node_.input(i), version));
}

}  // namespace stitchwork::onnx_reader
