#include "core/onnx/functions.h"

#include <utility>

#include "core/base/error.h"

namespace stitchwork::onnx_reader {

std::vector<pb::AttributeProto> defaults_of(const pb::FunctionProto& function) {
  std::vector<pb::AttributeProto> result;
  const auto& fields = function.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() != 11 || field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      continue;
    pb::AttributeProto attribute;
    if (!attribute.ParseFromString(field.length_delimited()))
      throw Error(fmt::format("function '{}': a default attribute is damaged", function.name()));
    result.push_back(std::move(attribute));
  }
  return result;
}

void bind_attributes(pb::NodeProto& node, const AttributeMap& given) {
  google::protobuf::RepeatedPtrField<pb::AttributeProto> kept;
  for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
    if (!attribute.ref_attr_name().empty()) {
      const auto found = given.find(attribute.ref_attr_name());
      if (found == given.end()) continue;
      pb::AttributeProto bound = found->second;
      bound.set_name(attribute.name());
      *kept.Add() = std::move(bound);
      continue;
    }
    if (attribute.has_g())
      for (pb::NodeProto& inner : *attribute.mutable_g()->mutable_node()) bind_attributes(inner, given);
    *kept.Add() = std::move(attribute);
  }
  node.mutable_attribute()->Swap(&kept);
}

}  // namespace stitchwork::onnx_reader
