// ONNX models written in tests, by the protobuf classes.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/literal.h"
#include "core/onnx/proto.h"

namespace stitchwork {

/// A model made node by node. Dimensions of inputs are sizes or names.
class OnnxModel {
 public:
  using Dim = std::variant<int, std::string>;
  using Attribute =
      std::pair<std::string, std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>>;

  explicit OnnxModel(int version = 17) {
    model.set_ir_version(8);
    auto* import = model.add_opset_import();
    import->set_domain("");
    import->set_version(version);
    graph().set_name("model");
  }

  onnx::GraphProto& graph() { return *model.mutable_graph(); }

  OnnxModel& input(const std::string& name, const std::vector<Dim>& dims,
                   int type = onnx::TensorProto::FLOAT) {
    auto* value = graph().add_input();
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const Dim& dim : dims) {
      auto* added = tensor->mutable_shape()->add_dim();
      if (const int* size = std::get_if<int>(&dim))
        added->set_dim_value(*size);
      else
        added->set_dim_param(std::get<std::string>(dim));
    }
    return *this;
  }

  OnnxModel& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }

  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<Attribute>& attributes = {}) {
    auto* added = graph().add_node();
    added->set_op_type(op);
    for (const std::string& name : inputs) added->add_input(name);
    for (const std::string& name : outputs) added->add_output(name);
    for (const auto& [name, value] : attributes) {
      auto* attribute = added->add_attribute();
      attribute->set_name(name);
      if (const auto* i = std::get_if<std::int64_t>(&value)) {
        attribute->set_type(onnx::AttributeProto::INT);
        attribute->set_i(*i);
      } else if (const auto* f = std::get_if<double>(&value)) {
        attribute->set_type(onnx::AttributeProto::FLOAT);
        attribute->set_f(static_cast<float>(*f));
      } else if (const auto* s = std::get_if<std::string>(&value)) {
        attribute->set_type(onnx::AttributeProto::STRING);
        attribute->set_s(*s);
      } else {
        attribute->set_type(onnx::AttributeProto::INTS);
        for (const std::int64_t one : std::get<std::vector<std::int64_t>>(value)) attribute->add_ints(one);
      }
    }
    return *added;
  }

  /// int64, as a Constant node or an initializer.
  static onnx::TensorProto integers(const std::string& name, const std::vector<std::int64_t>& dims,
                                    const std::vector<std::int64_t>& values) {
    onnx::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    for (const std::int64_t extent : dims) tensor.add_dims(extent);
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return tensor;
  }
  OnnxModel& constant(const std::string& name, const std::vector<std::int64_t>& dims,
                      const std::vector<std::int64_t>& values) {
    auto* attribute = node("Constant", {}, {name}).add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    *attribute->mutable_t() = integers("", dims, values);
    return *this;
  }
  /// float32, rank 0.
  OnnxModel& constant(const std::string& name, float value) {
    auto* attribute = node("Constant", {}, {name}).add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    attribute->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    attribute->mutable_t()->add_float_data(value);
    return *this;
  }
  OnnxModel& initializer(onnx::TensorProto tensor) {
    *graph().add_initializer() = std::move(tensor);
    return *this;
  }
  /// float32, as raw_data.
  OnnxModel& initializer(const std::string& name, const Literal& literal) {
    onnx::TensorProto tensor;
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : literal.shape.dims) tensor.add_dims(extent);
    tensor.set_raw_data(literal.bytes.data(), literal.bytes.size());
    return initializer(std::move(tensor));
  }

  std::string bytes() const { return model.SerializeAsString(); }

  onnx::ModelProto model;
};

}  // namespace stitchwork
