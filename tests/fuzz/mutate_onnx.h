// Edits of ONNX models that keep them protocol buffers of ONNX's form: bytes changed at random mostly are
// none.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/onnx/operators.h"
#include "core/onnx/proto.h"

namespace stitchwork::fuzz {

namespace protobuf = google::protobuf;

class OnnxMutator {
 public:
  OnnxMutator(onnx_reader::pb::ModelProto& model, unsigned seed) : random_(seed), model_(model) {}

  void mutate() {
    for (int edits = 1 + at(3); edits > 0; --edits) {
      messages_.clear();
      strings_.clear();
      collect(model_);
      edit(*messages_[static_cast<std::size_t>(at(static_cast<int>(messages_.size())))]);
    }
  }

 private:
  using Field = protobuf::FieldDescriptor;

  int at(int size) { return static_cast<int>(random_() % static_cast<unsigned>(size)); }

  void collect(protobuf::Message& message) {
    messages_.push_back(&message);
    const protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const Field*> fields;
    reflection.ListFields(message, &fields);
    for (const Field* field : fields) {
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count && messages_.size() < 5000; ++i) {
        if (field->cpp_type() == Field::CPPTYPE_MESSAGE)
          collect(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                       : *reflection.MutableMessage(&message, field));
        else if (field->type() == Field::TYPE_STRING)
          strings_.push_back(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                                  : reflection.GetString(message, field));
      }
    }
  }

  std::int64_t integer(std::int64_t old) {
    constexpr std::array<std::int64_t, 16> kValues = {
        0, 1, -1, 2, 3, -2, 4, 7, 16, 21, 64, 1025, 2147483647, -2147483648, INT64_MAX, INT64_MIN};
    switch (at(4)) {
      case 0:
        return old ^ (std::int64_t{1} << at(63));
      case 1:
        return old / 2;
      default:
        return kValues[static_cast<std::size_t>(at(kValues.size()))];
    }
  }
  double number() {
    constexpr std::array<double, 10> kValues = {0, 1, -1, 0.5, 2.5, 1e30, -1e30, 1e-40, INFINITY, NAN};
    return kValues[static_cast<std::size_t>(at(kValues.size()))];
  }
  std::string text(const Field& field, const std::string& old) {
    if (field.name() == "op_type" && at(2) == 0) {
      static const std::vector<const onnx_reader::OperatorRow*> rows = onnx_reader::all_operators();
      return std::string(rows[static_cast<std::size_t>(at(static_cast<int>(rows.size())))]->name);
    }
    if (field.type() == Field::TYPE_BYTES) {
      std::string bytes = old;
      if (at(3) == 0) bytes.resize(bytes.size() / 2);
      if (!bytes.empty())
        bytes[static_cast<std::size_t>(at(static_cast<int>(bytes.size())))] = static_cast<char>(at(256));
      return bytes;
    }
    return strings_.empty() || at(8) == 0
               ? std::string()
               : strings_[static_cast<std::size_t>(at(static_cast<int>(strings_.size())))];
  }

  /// A field of the message: mostly one that is set.
  const Field* choose(const protobuf::Message& message) {
    std::vector<const Field*> fields;
    message.GetReflection()->ListFields(message, &fields);
    const protobuf::Descriptor& type = *message.GetDescriptor();
    if (fields.empty() || at(6) == 0)
      return type.field_count() == 0 ? nullptr : type.field(at(type.field_count()));
    return fields[static_cast<std::size_t>(at(static_cast<int>(fields.size())))];
  }

  void edit(protobuf::Message& message) {
    const Field* field = choose(message);
    if (field == nullptr) return;
    const protobuf::Reflection& reflection = *message.GetReflection();
    if (!field->is_repeated())
      return at(8) == 0 ? reflection.ClearField(&message, field) : edit_one(message, *field);
    const int size = reflection.FieldSize(message, field);
    switch (size == 0 ? 0 : at(4)) {
      case 0:
        return add(message, *field);
      case 1:
        reflection.SwapElements(&message, field, at(size), size - 1);
        return reflection.RemoveLast(&message, field);
      case 2:
        return reflection.SwapElements(&message, field, at(size), at(size));
      default:
        return edit_element(message, *field, at(size));
    }
  }

  /// A copy of a message of this type, from anywhere in the model; an empty one if there is none. Made before
  /// anything is changed: setting one field of a oneof frees the others.
  std::unique_ptr<protobuf::Message> another(const Field& field) {
    const protobuf::Message& prototype =
        *protobuf::MessageFactory::generated_factory()->GetPrototype(field.message_type());
    std::vector<const protobuf::Message*> same;
    for (const protobuf::Message* other : messages_)
      if (other->GetDescriptor() == field.message_type()) same.push_back(other);
    std::unique_ptr<protobuf::Message> copy(prototype.New());
    if (!same.empty()) copy->CopyFrom(*same[static_cast<std::size_t>(at(static_cast<int>(same.size())))]);
    return copy;
  }

  void edit_one(protobuf::Message& message, const Field& field) {
    const protobuf::Reflection& r = *message.GetReflection();
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT32:
        return r.SetInt32(&message, &field, static_cast<std::int32_t>(integer(r.GetInt32(message, &field))));
      case Field::CPPTYPE_INT64:
        return r.SetInt64(&message, &field, integer(r.GetInt64(message, &field)));
      case Field::CPPTYPE_UINT64:
        return r.SetUInt64(&message, &field, static_cast<std::uint64_t>(integer(0)));
      case Field::CPPTYPE_FLOAT:
        return r.SetFloat(&message, &field, static_cast<float>(number()));
      case Field::CPPTYPE_DOUBLE:
        return r.SetDouble(&message, &field, number());
      case Field::CPPTYPE_ENUM:
        return r.SetEnumValue(&message, &field, at(22));
      case Field::CPPTYPE_STRING:
        return r.SetString(&message, &field, text(field, r.GetString(message, &field)));
      case Field::CPPTYPE_MESSAGE: {
        const auto copy = another(field);
        return r.MutableMessage(&message, &field)->CopyFrom(*copy);
      }
      default:
        return;
    }
  }

  void edit_element(protobuf::Message& message, const Field& field, int i) {
    const protobuf::Reflection& r = *message.GetReflection();
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT32:
        return r.SetRepeatedInt32(&message, &field, i,
                                  static_cast<std::int32_t>(integer(r.GetRepeatedInt32(message, &field, i))));
      case Field::CPPTYPE_INT64:
        return r.SetRepeatedInt64(&message, &field, i, integer(r.GetRepeatedInt64(message, &field, i)));
      case Field::CPPTYPE_FLOAT:
        return r.SetRepeatedFloat(&message, &field, i, static_cast<float>(number()));
      case Field::CPPTYPE_DOUBLE:
        return r.SetRepeatedDouble(&message, &field, i, number());
      case Field::CPPTYPE_STRING:
        return r.SetRepeatedString(&message, &field, i, text(field, r.GetRepeatedString(message, &field, i)));
      case Field::CPPTYPE_MESSAGE: {
        const auto copy = another(field);
        return r.MutableRepeatedMessage(&message, &field, i)->CopyFrom(*copy);
      }
      default:
        return;
    }
  }

  void add(protobuf::Message& message, const Field& field) {
    const protobuf::Reflection& r = *message.GetReflection();
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT32:
        return r.AddInt32(&message, &field, static_cast<std::int32_t>(integer(0)));
      case Field::CPPTYPE_INT64:
        return r.AddInt64(&message, &field, integer(0));
      case Field::CPPTYPE_FLOAT:
        return r.AddFloat(&message, &field, static_cast<float>(number()));
      case Field::CPPTYPE_DOUBLE:
        return r.AddDouble(&message, &field, number());
      case Field::CPPTYPE_STRING:
        return r.AddString(&message, &field, text(field, {}));
      case Field::CPPTYPE_MESSAGE: {
        const auto copy = another(field);
        return r.AddMessage(&message, &field)->CopyFrom(*copy);
      }
      default:
        return;
    }
  }

  std::mt19937 random_;
  onnx_reader::pb::ModelProto& model_;
  std::vector<protobuf::Message*> messages_;
  std::vector<std::string> strings_;
};

}  // namespace stitchwork::fuzz
