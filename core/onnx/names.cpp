#include "core/onnx/names.h"

#include <fmt/format.h>

namespace stitchwork::onnx_reader {

std::string hlo_name(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-';
    if (plain || !result.empty()) result += plain ? c : '_';
  }
  const std::size_t first = result.find_first_not_of("_.-");
  result = first == std::string::npos ? "" : result.substr(first);
  if (!result.empty() && result[0] >= '0' && result[0] <= '9') result.insert(0, "v");
  return result;
}

std::string scope_name(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (c != '/' || !result.empty()) result += c < ' ' || c > '~' || c == '"' || c == '\\' ? '_' : c;
  return result;
}

std::string first_output(const pb::NodeProto& node) {
  for (const std::string& output : node.output())
    if (!output.empty()) return output;
  return {};
}

std::string title(const pb::NodeProto& node) {
  const std::string& domain = node.domain();
  return fmt::format("node '{}' ({}{}{})", node.name().empty() ? first_output(node) : node.name(), domain,
                     domain.empty() ? "" : ".", node.op_type());
}

}  // namespace stitchwork::onnx_reader
