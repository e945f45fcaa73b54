// Micro graphs and tiny models in f32, f16 and bf16: right under every planner, with every sanitizer.
#include <cmath>
#include <regex>

#include "experiments/model.h"
#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

struct Case {
  std::string dataset, dtype;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.dataset << " in " << c.dtype; }

/// The graph with its f32 values of another type, constants within its range.
Graph retyped(const Graph& graph, const std::string& dtype) {
  static const std::regex f32(R"(\bf32\[)");
  const std::string text = std::regex_replace(to_text(graph), f32, dtype + "[");
  const double most = dtype == "f16" ? 65504 : 3.3e38;
  const std::regex constant("(\\b" + dtype + R"(\[\] constant\()([-+.0-9e]+)\))");
  std::string result;
  auto from = text.begin();
  for (std::sregex_iterator found(text.begin(), text.end(), constant), end; found != end; ++found) {
    const double value = std::stod((*found)[2]);
    result.append(from, text.begin() + found->position(2));
    result += std::abs(value) > most ? fmt::format("{}", std::copysign(most, value)) : (*found)[2].str();
    from = text.begin() + found->position(2) + found->length(2);
  }
  return testing::graph_of(result.append(from, text.end()));
}

class Types : public ::testing::TestWithParam<Case> {};

TEST_P(Types, AreRightAndCleanUnderEveryPlanner) {
  SKIP_WITHOUT_COMPILER();
  const Model model = load_model(GetParam().dataset);
  const Graph graph = GetParam().dtype == "f32" ? model.graph : retyped(model.graph, GetParam().dtype);
  testing::expect_clean_and_right(graph, generate_inputs(graph, 0, model.inputs));
}

/// What compiles and runs in seconds; EveryDataset runs the others as they are.
std::vector<Case> cases() {
  constexpr int kMostOps = 300;
  constexpr std::int64_t kMostBytes = 1 << 20;
  std::vector<Case> result;
  for (const Dataset& d : datasets())
    if (!d.large && d.ops <= kMostOps && d.parameter_bytes <= kMostBytes &&
        (d.kind == "micro" || d.name.ends_with("_tiny")))
      for (const char* dtype : {"f32", "f16", "bf16"}) result.push_back({d.name, dtype});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Datasets, Types, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.dataset + "_" + info.param.dtype; });

}  // namespace TEST_FILE
}  // namespace stitchwork
