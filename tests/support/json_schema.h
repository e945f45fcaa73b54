// The part of JSON Schema (draft 2020-12) the documents in docs/schema/ use: type, required, properties,
// additionalProperties, items, enum, const, minimum, anyOf, $ref (within the document, or to a sibling file).
// An unknown keyword is a failure of its own, so that a schema cannot silently promise what is not checked.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/file.h"

namespace stitchwork::testing {

class JsonSchema {
 public:
  using Json = nlohmann::json;

  explicit JsonSchema(Json root) : root_(std::move(root)) {}
  /// `path` is relative to the source directory, e.g. "docs/schema/plan.schema.json".
  static JsonSchema read(const std::string& path) {
    return JsonSchema(Json::parse(read_file(std::string(STITCHWORK_SOURCE_DIR) + "/" + path)));
  }

  /// Everything about `document` that the schema forbids; empty if it conforms.
  std::vector<std::string> problems(const Json& document) const {
    std::vector<std::string> found;
    check(root_, document, "$", found);
    return found;
  }

 private:
  static bool has_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return false;
  }

  /// Checks against "#/$defs/x", of this document, or "plan.schema.json#/$defs/x", of a file beside it.
  void check_reference(const std::string& reference, const Json& value, const std::string& path,
                       std::vector<std::string>& found) const {
    const std::size_t hash = reference.find('#');
    const Json::json_pointer pointer(reference.substr(hash + 1));
    if (hash == 0) return check(root_.at(pointer), value, path, found);
    static std::map<std::string, JsonSchema> siblings;
    const std::string file = reference.substr(0, hash);
    if (!siblings.contains(file)) siblings.emplace(file, read("docs/schema/" + file));
    const JsonSchema& other = siblings.at(file);
    other.check(other.root_.at(pointer), value, path, found);
  }

  void check(const Json& schema, const Json& value, const std::string& path,
             std::vector<std::string>& found) const {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) found.push_back(path + ": not allowed");
      return;
    }
    static const std::set<std::string> known = {"$schema",
                                                "$id",
                                                "$defs",
                                                "$ref",
                                                "$comment",
                                                "title",
                                                "description",
                                                "type",
                                                "required",
                                                "properties",
                                                "additionalProperties",
                                                "items",
                                                "enum",
                                                "const",
                                                "minimum",
                                                "anyOf"};
    for (const auto& [keyword, _] : schema.items())
      if (!known.contains(keyword))
        found.push_back(path + ": the schema uses unsupported keyword " + keyword);
    if (schema.contains("$ref")) check_reference(schema["$ref"], value, path, found);
    check_value(schema, value, path, found);
    if (value.is_object()) check_object(schema, value, path, found);
    if (value.is_array() && schema.contains("items"))
      for (std::size_t i = 0; i < value.size(); ++i)
        check(schema["items"], value[i], fmt::format("{}[{}]", path, i), found);
  }

  void check_value(const Json& schema, const Json& value, const std::string& path,
                   std::vector<std::string>& found) const {
    if (schema.contains("type")) {
      const Json& type = schema["type"];
      bool ok = false;
      for (const Json& one : type.is_array() ? type : Json::array({type})) ok = ok || has_type(value, one);
      if (!ok) found.push_back(fmt::format("{}: {} is not of type {}", path, value.dump(), type.dump()));
    }
    if (schema.contains("const") && value != schema["const"])
      found.push_back(fmt::format("{}: {} is not {}", path, value.dump(), schema["const"].dump()));
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      found.push_back(fmt::format("{}: {} is none of {}", path, value.dump(), schema["enum"].dump()));
    if (schema.contains("minimum") && value.is_number() && value < schema["minimum"])
      found.push_back(fmt::format("{}: {} is below {}", path, value.dump(), schema["minimum"].dump()));
    if (schema.contains("anyOf")) {
      bool ok = false;
      for (const Json& option : schema["anyOf"]) {
        std::vector<std::string> inner;
        check(option, value, path, inner);
        ok = ok || inner.empty();
      }
      if (!ok) found.push_back(path + ": fits none of the alternatives");
    }
  }

  void check_object(const Json& schema, const Json& value, const std::string& path,
                    std::vector<std::string>& found) const {
    if (schema.contains("required"))
      for (const Json& key : schema["required"])
        if (!value.contains(key.get<std::string>()))
          found.push_back(path + ": misses " + key.get<std::string>());
    for (const auto& [key, member] : value.items()) {
      const std::string at = path + "." + key;
      if (schema.contains("properties") && schema["properties"].contains(key))
        check(schema["properties"][key], member, at, found);
      else if (schema.contains("additionalProperties"))
        check(schema["additionalProperties"], member, at, found);
    }
  }

  Json root_;
};

}  // namespace stitchwork::testing
