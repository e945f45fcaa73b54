// Reading device files: their texts, and their keys one by one with errors that name file and key.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace stitchwork {

struct DeviceText {
  std::string origin;  ///< file name for errors
  std::string json;
};

/// The files compiled in, then those of the folder that STITCHWORK_DEVICES names.
std::vector<DeviceText> device_texts();

/// Throws Error with the line where the text is not JSON.
nlohmann::json parse_device_json(std::string_view text, const std::string& origin);

/// Reads the keys of one file and knows which are left over.
class DeviceReader {
 public:
  DeviceReader(const nlohmann::json& document, const std::string& origin)
      : document_(document), origin_(origin) {}

  [[noreturn]] void fail(std::string_view key, std::string_view what, std::string hint = {}) const {
    throw Error(origin_, 0, 0, fmt::format("key \"{}\" {}", key, what), std::move(hint));
  }

  bool contains(const char* key) const { return document_.contains(key); }

  const nlohmann::json& at(std::string_view key) {
    seen_.emplace_back(key);
    const auto it = document_.find(key);
    if (it == document_.end()) fail(key, "is missing", "docs/occupancy.md lists the keys");
    return *it;
  }

  std::string text(std::string_view key) {
    const nlohmann::json& value = at(key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) fail(key, "is not a text");
    return value;
  }

  int count(std::string_view key) {
    const nlohmann::json& value = at(key);
    if (!value.is_number_unsigned()) fail(key, "is no whole number");
    return value;
  }

  std::vector<std::string> texts(std::string_view key) {
    const nlohmann::json& value = at(key);
    if (!value.is_array() ||
        !std::ranges::all_of(value, [](const nlohmann::json& v) { return v.is_string(); }))
      fail(key, "is not a list of texts");
    return value;
  }

  /// {"value": number, "source": where it comes from}
  template <typename Number>
  void number(std::string_view key, Number& result) {
    const nlohmann::json& entry = at(key);
    if (!entry.is_object() || !entry.contains("value") || !entry["value"].is_number())
      fail(key, "has no \"value\"", R"(write {"value": 80, "source": "where it comes from"})");
    if (!entry.contains("source") || !entry["source"].is_string() ||
        entry["source"].get_ref<const std::string&>().empty())
      fail(key, "has no \"source\"", "say where the value comes from");
    if (std::is_integral_v<Number> && !entry["value"].is_number_integer()) fail(key, "is not an integer");
    if (entry["value"].get<double>() < 0) fail(key, "is negative");
    result = entry["value"].get<Number>();
  }

  template <class Number>
  void optional_number(const char* key, Number& result) {
    if (contains(key)) number(key, result);
  }

  void refuse_unknown_keys() const {
    for (const auto& [key, value] : document_.items())
      if (std::ranges::find(seen_, key) == seen_.end())
        fail(key, "is unknown", "docs/occupancy.md lists the keys");
  }

 private:
  const nlohmann::json& document_;
  const std::string& origin_;
  std::vector<std::string> seen_;
};

}  // namespace stitchwork
