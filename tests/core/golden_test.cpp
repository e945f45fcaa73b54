// The datasets' golden tensors: inputs and JAX's outputs of the small models.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/evaluator.h"
#include "core/hlo_text.h"
#include "core/inputs.h"
#include "core/npy.h"

namespace stitchwork {
namespace {

namespace fs = std::filesystem;

const fs::path kDatasets = STITCHWORK_SOURCE_DIR "/datasets";

/// DIR/<prefix>0.npy, <prefix>1.npy, ...
std::vector<Literal> numbered(const fs::path& folder, const std::string& prefix) {
  std::vector<Literal> result;
  for (int i = 0;; ++i) {
    const fs::path file = folder / fmt::format("{}{}.npy", prefix, i);
    if (!fs::exists(file)) return result;
    result.push_back(read_npy(file.string()));
  }
}

/// What f16 and bf16 keep of f32: outputs of a mixed-precision model are as exact as the type it computes in.
Literal rounded_to(DType type, const Literal& value) {
  if (value.shape.dtype != DType::kF32 || type == DType::kF32) return value;
  Shape shape = value.shape;
  shape.dtype = type;
  Literal result = Literal::zeros(shape);
  for (std::int64_t i = 0; i < shape.elements_count(); ++i) result.set_double(i, value.get_double(i));
  return result;
}

/// The type a dataset computes in, by its JSON.
DType computed_in(const std::string& name) {
  const auto document = nlohmann::json::parse(std::ifstream(kDatasets / (name + ".json")));
  return dtype_from_name(document["dtype"].get<std::string>()).value();
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, EvaluatorAgreesWithJax) {
  const fs::path folder = kDatasets / "golden" / GetParam();
  const Graph graph = read_graph((kDatasets / (GetParam() + ".hlo")).string());
  const std::vector<Literal> outputs = evaluate(graph, numbered(folder, "in"));
  const std::vector<Literal> expected = numbered(folder, "out");
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(outputs.size(), expected.size());
  const DType type = computed_in(GetParam());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const CheckResult check = check_output(rounded_to(type, outputs[i]), rounded_to(type, expected[i]));
    EXPECT_TRUE(check.ok) << check.message;
  }
}

std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  if (fs::exists(kDatasets / "golden"))
    for (const auto& entry : fs::directory_iterator(kDatasets / "golden"))
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Datasets, Golden, testing::ValuesIn(golden_models()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace stitchwork
