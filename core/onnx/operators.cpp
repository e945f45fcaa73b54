#include "core/onnx/operators.h"

#include <algorithm>
#include <map>

namespace stitchwork::onnx_reader {
namespace {

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, const OperatorRow*>& table() {
  static const auto rows = [] {
    std::map<Key, const OperatorRow*> map;
    for (const std::span<const OperatorRow> family : {elementwise_operators(),
                                                      activation_operators(),
                                                      reduction_operators(),
                                                      shape_operators(),
                                                      linear_operators(),
                                                      index_operators(),
                                                      normalization_operators(),
                                                      attention_operators(),
                                                      convolution_operators(),
                                                      pooling_operators(),
                                                      control_operators(),
                                                      recurrent_operators(),
                                                      loss_operators(),
                                                      random_operators(),
                                                      training_operators(),
                                                      resize_operators(),
                                                      sample_operators(),
                                                      image_operators(),
                                                      quantize_operators(),
                                                      signal_operators(),
                                                      sequence_operators(),
                                                      ml_operators(),
                                                      quantized_product_operators()})
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

std::string why_not(std::string_view domain, std::string_view name) {
  static const std::map<std::string_view, std::vector<std::string_view>> reasons = {
      {"it draws random numbers, which cannot be compared",
       {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
        "RandomUniformLike"}},
      {"the shape of its result depends on its inputs' values", {"NonMaxSuppression"}},
      {"it works on strings",
       {"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"}}};
  if (domain.empty())
    for (const auto& [reason, names] : reasons)
      if (std::ranges::count(names, name) > 0) return fmt::format(": {}", reason);
  return {};
}

std::vector<const OperatorRow*> all_operators() {
  std::vector<const OperatorRow*> rows;
  for (const auto& [key, row] : table()) rows.push_back(row);
  return rows;
}

}  // namespace stitchwork::onnx_reader
