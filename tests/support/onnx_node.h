// Models of one ONNX node, made in tests and evaluated.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/onnx/onnx.h"
#include "core/onnx/proto.h"
#include "core/onnx/tensor.h"

namespace stitchwork {

/// An array of these numbers in row-major order.
inline Literal onnx_array(DType dtype, const std::vector<std::int64_t>& dims,
                          const std::vector<double>& values) {
  Literal literal = Literal::zeros(Shape::array(dtype, dims));
  EXPECT_EQ(literal.shape.elements_count(), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return literal;
}

inline Literal f32_array(const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
  return onnx_array(DType::kF32, dims, values);
}

inline std::vector<double> numbers_of(const Literal& literal) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < literal.shape.elements_count(); ++i) values.push_back(literal.get_double(i));
  return values;
}

class OnnxNode {
 public:
  OnnxNode(const std::string& op, std::int64_t version, int outputs = 1, const std::string& domain = "") {
    model_.set_ir_version(8);
    auto* import = model_.add_opset_import();
    import->set_domain(domain);
    import->set_version(version);
    node_ = model_.mutable_graph()->add_node();
    node_->set_op_type(op);
    node_->set_domain(domain);
    node_->set_name("n");
    for (int i = 0; i < outputs; ++i) {
      const std::string name = "y" + std::to_string(i);
      node_->add_output(name);
      model_.mutable_graph()->add_output()->set_name(name);
    }
  }

  OnnxNode(OnnxNode&&) = default;
  OnnxNode& operator=(OnnxNode&&) = default;
  OnnxNode(const OnnxNode&) = delete;  // node_ is a part of model_
  OnnxNode& operator=(const OnnxNode&) = delete;
  ~OnnxNode() = default;

  /// A parameter of the graph.
  OnnxNode& input(Literal value) {
    const std::string name = "x" + std::to_string(node_->input_size());
    node_->add_input(name);
    auto* declared = model_.mutable_graph()->add_input();
    declared->set_name(name);
    auto* type = declared->mutable_type()->mutable_tensor_type();
    type->set_elem_type(number_of(value.shape.dtype));
    for (const std::int64_t extent : value.shape.dims)
      type->mutable_shape()->add_dim()->set_dim_value(extent);
    type->mutable_shape();
    values_.push_back(std::move(value));
    return *this;
  }
  /// An initializer.
  OnnxNode& known(const Literal& value) {
    const std::string name = "x" + std::to_string(node_->input_size());
    node_->add_input(name);
    auto* tensor = model_.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(number_of(value.shape.dtype));
    for (const std::int64_t extent : value.shape.dims) tensor->add_dims(extent);
    tensor->set_raw_data(value.bytes.data(), value.bytes.size());
    return *this;
  }
  OnnxNode& absent() {
    node_->add_input("");
    return *this;
  }

  OnnxNode& set(const std::string& name, std::int64_t value) {
    attribute(name, onnx_reader::pb::AttributeProto::INT).set_i(value);
    return *this;
  }
  OnnxNode& set(const std::string& name, int value) { return set(name, std::int64_t{value}); }
  OnnxNode& set(const std::string& name, double value) {
    attribute(name, onnx_reader::pb::AttributeProto::FLOAT).set_f(static_cast<float>(value));
    return *this;
  }
  OnnxNode& set(const std::string& name, const char* value) {
    attribute(name, onnx_reader::pb::AttributeProto::STRING).set_s(value);
    return *this;
  }
  OnnxNode& set(const std::string& name, const std::vector<std::int64_t>& values) {
    auto& list = attribute(name, onnx_reader::pb::AttributeProto::INTS);
    for (const std::int64_t value : values) list.add_ints(value);
    return *this;
  }
  OnnxNode& set(const std::string& name, const std::vector<double>& values) {
    auto& list = attribute(name, onnx_reader::pb::AttributeProto::FLOATS);
    for (const double value : values) list.add_floats(static_cast<float>(value));
    return *this;
  }
  OnnxNode& set(const std::string& name, const std::vector<std::string>& values) {
    auto& list = attribute(name, onnx_reader::pb::AttributeProto::STRINGS);
    for (const std::string& value : values) list.add_strings(value);
    return *this;
  }

  Graph read() const { return parse_onnx(model_.SerializeAsString(), "m.onnx"); }
  /// The outputs.
  std::vector<Literal> run() const { return evaluate(read(), values_); }
  /// The message of the refusal; empty if the model is read.
  std::string refusal() const {
    try {
      read();
    } catch (const Error& error) {
      return error.message();
    }
    return {};
  }

 private:
  static std::int32_t number_of(DType dtype) {
    for (std::int32_t number = 1; number < 27; ++number) {
      try {
        if (onnx_reader::dtype_of(number) == dtype) return number;
      } catch (const Error&) {  // a type that is not read
      }
    }
    ADD_FAILURE() << "ONNX has no type " << name(dtype);
    return 0;
  }

  onnx_reader::pb::AttributeProto& attribute(const std::string& name,
                                             onnx_reader::pb::AttributeProto::AttributeType type) {
    auto* added = node_->add_attribute();
    added->set_name(name);
    added->set_type(type);
    return *added;
  }

  onnx_reader::pb::ModelProto model_;
  onnx_reader::pb::NodeProto* node_;
  std::vector<Literal> values_;
};

inline void expect_numbers(const Literal& literal, const std::vector<std::int64_t>& dims,
                           const std::vector<double>& values, double tolerance = 1e-6) {
  EXPECT_EQ(literal.shape.dims, dims);
  const std::vector<double> actual = numbers_of(literal);
  ASSERT_EQ(actual.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(actual[i], values[i], tolerance) << "element " << i;
}

}  // namespace stitchwork
