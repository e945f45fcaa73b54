// Reading JSON documents: every complaint names the file and the place in it.
#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace stitchwork {

/// What complaints name.
struct JsonSource {
  std::string file;         ///< the document
  std::string schema_file;  ///< what documents of its kind look like
};

/// A value and where it is: every complaint names file and JSON path.
class JsonCursor {
 public:
  /// `source` outlives the cursor.
  JsonCursor(const nlohmann::json& json, std::string path, const JsonSource& source)
      : json_(&json), path_(std::move(path)), source_(&source) {}

  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    if (hint.empty()) hint = fmt::format("see {}", source_->schema_file);
    throw Error(source_->file, 0, 0, fmt::format("{}: {}", path_.empty() ? "the document" : path_, what),
                std::move(hint));
  }

  JsonCursor at(const std::string& key) const {
    require(json_->is_object(), "an object");
    const auto found = json_->find(key);
    if (found == json_->end()) fail(fmt::format("'{}' is missing", key));
    return JsonCursor(*found, path_.empty() ? key : path_ + "." + key, *source_);
  }
  std::optional<JsonCursor> find(const std::string& key) const {
    require(json_->is_object(), "an object");
    if (!json_->contains(key)) return std::nullopt;
    return at(key);
  }

  std::string text() const {
    require(json_->is_string(), "a string");
    return json_->get<std::string>();
  }
  double number() const {
    require(json_->is_number(), "a number");
    return json_->get<double>();
  }
  bool boolean() const {
    require(json_->is_boolean(), "true or false");
    return json_->get<bool>();
  }
  std::int64_t integer() const {
    require(json_->is_number_integer(), "an integer");
    if (json_->is_number_unsigned() &&
        json_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail("the integer is too large");
    return json_->get<std::int64_t>();
  }
  int small() const {
    const std::int64_t value = integer();
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
      fail(fmt::format("{} does not fit 32 bits", value));
    return static_cast<int>(value);
  }
  bool is_null() const { return json_->is_null(); }
  bool is_array() const { return json_->is_array(); }
  bool is_object() const { return json_->is_object(); }
  bool is(const nlohmann::json& value) const { return *json_ == value; }

  template <typename Visit>
  void each(Visit visit) const {
    require(json_->is_array(), "an array");
    for (std::size_t i = 0; i < json_->size(); ++i)
      visit(JsonCursor((*json_)[i], fmt::format("{}[{}]", path_, i), *source_));
  }
  template <typename Visit>
  void each_member(Visit visit) const {
    require(json_->is_object(), "an object");
    for (const auto& [key, value] : json_->items())
      visit(key, JsonCursor(value, path_ + "." + key, *source_));
  }

  /// Complains of a member that is none of these.
  void only(std::initializer_list<std::string_view> keys) const {
    require(json_->is_object(), "an object");
    for (const auto& [key, value] : json_->items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        fail(fmt::format("unknown key '{}'", key), fmt::format("known: {}", fmt::join(keys, ", ")));
  }

  /// The enumerator whose name() is the text.
  template <typename Enum, std::size_t N>
  Enum one_of(const std::array<Enum, N>& values) const {
    const std::string given = text();
    std::string known;
    for (Enum value : values) {
      if (name(value) == given) return value;
      known += (known.empty() ? "" : ", ") + std::string(name(value));
    }
    fail(fmt::format("'{}' is none of {}", given, known));
  }

 private:
  void require(bool ok, std::string_view wanted) const {
    if (!ok) fail(fmt::format("expected {}, found {}", wanted, json_->type_name()));
  }

  const nlohmann::json* json_;
  std::string path_;
  const JsonSource* source_;
};

/// A document of a known kind. `hint`: what such a document is.
class JsonDocument {
 public:
  /// Throws Error with line and column where `text` is not JSON, or where its "schema" is another.
  JsonDocument(const std::string& text, const std::string& file, std::string_view schema,
               std::string_view hint, std::string schema_file);
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  JsonCursor root() const { return {json_, "", source_}; }

 private:
  JsonSource source_;
  nlohmann::json json_;
};

}  // namespace stitchwork
