#include "analysis/json/json_cursor.h"

namespace stitchwork {
namespace {

nlohmann::json parse(const std::string& text, const std::string& file, std::string_view hint) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    // The position counts bytes from 1.
    const std::size_t end = std::min(e.byte == 0 ? 0 : e.byte - 1, text.size());
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    const std::size_t start = text.rfind('\n', end == 0 ? 0 : end - 1);
    const std::size_t column = line == 0 || start == std::string::npos ? end + 1 : end - start;
    throw Error(file, static_cast<int>(line) + 1, static_cast<int>(column), "not JSON", std::string(hint));
  }
}

}  // namespace

JsonDocument::JsonDocument(const std::string& text, const std::string& file, std::string_view schema,
                           std::string_view hint, std::string schema_file)
    : source_{file, std::move(schema_file)}, json_(parse(text, file, hint)) {
  const JsonCursor found = root().at("schema");
  if (found.text() != schema)
    found.fail(fmt::format("'{}' is not {}", found.text(), schema), std::string(hint));
}

}  // namespace stitchwork
