#include "core/onnx/operators.h"

#include <map>

namespace stitchwork::onnx_reader {
namespace {

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, const OperatorRow*>& table() {
  static const auto rows = [] {
    std::map<Key, const OperatorRow*> map;
    for (const std::span<const OperatorRow> family :
         {elementwise_operators(), activation_operators(), reduction_operators(), shape_operators(),
          linear_operators(), index_operators(), normalization_operators(), attention_operators(),
          convolution_operators(), pooling_operators(), control_operators()})
      for (const OperatorRow& row : family) {
        const bool added = map.emplace(Key{row.domain, row.name}, &row).second;
        SW_CHECK(added, "two rows for operator {}", row.name);
      }
    return map;
  }();
  return rows;
}

}  // namespace

const OperatorRow* find_operator(std::string_view domain, std::string_view name) {
  const auto found = table().find({domain == "ai.onnx" ? "" : domain, name});
  return found == table().end() ? nullptr : found->second;
}

std::vector<const OperatorRow*> all_operators() {
  std::vector<const OperatorRow*> rows;
  for (const auto& [key, row] : table()) rows.push_back(row);
  return rows;
}

}  // namespace stitchwork::onnx_reader
