#include "experiments/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kText[] =
    "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  b = f32[4] parameter(1)\n  ROOT c = f32[4] add(a, "
    "b)\n}\n";

/// Loading the text with this JSON beside it throws an Error that says so.
void expect_error(const std::string& json, const ::testing::Matcher<std::string>& message) {
  const std::string folder = testing::test_folder();
  write_file(folder + "/m.hlo", kText);
  write_file(folder + "/m.json", json);
  try {
    load_model(folder + "/m.hlo");
    FAIL() << "loaded";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("m.json"), message));
  }
}

TEST(Model, EveryDatasetLoadsByItsName) {
  ASSERT_GE(datasets().size(), 10u);
  for (const Dataset& d : datasets()) {
    if (d.name == "bert_base") continue;  // its one layer is enough here
    const Model model = load_model(d.name);
    EXPECT_EQ(model.graph.source, d.name);
    EXPECT_EQ(model.graph.source_sha256.size(), 64u);
    EXPECT_EQ(model.inputs.size(), model.graph.entry_computation().parameters.size()) << d.name;
  }
}

TEST(Model, JsonBesideAFileFillsItsParameters) {
  const std::string folder = testing::test_folder();
  write_file(folder + "/my.model.v2.hlo", kText);
  EXPECT_TRUE(load_model(folder + "/my.model.v2.hlo").inputs.empty());
  write_file(folder + "/my.model.v2.json", R"({"inputs": {"*": {"distribution": "constant", "value": 3},
                                                         "b": {"distribution": "uniform", "low": 1, "high": 2}}})");
  const Model model = load_model(folder + "/my.model.v2.hlo");
  EXPECT_EQ(model.inputs.at("a").kind, Distribution::Kind::kConstant);
  EXPECT_EQ(model.inputs.at("a").value, 3);
  EXPECT_EQ(model.inputs.at("b").kind, Distribution::Kind::kUniform);  // a name beats a pattern
}

TEST(Model, MistakesInTheJsonAreNamed) {
  expect_error("{", HasSubstr("not JSON"));
  expect_error(R"({"inputs": []})", HasSubstr("expected an object"));
  expect_error(R"({"inputs": {"z": {"distribution": "constant"}}})",
               HasSubstr("inputs.z names no parameter"));
  expect_error(R"({"inputs": {"a": {"distribution": "poisson"}}})",
               AllOf(HasSubstr("poisson"), HasSubstr("known: normal")));
  expect_error(R"({"inputs": {"a": {"distribution": "normal", "mean": "high"}}})", HasSubstr("\"mean\""));
}

TEST(Model, UnknownNameSuggestsTheClosest) {
  try {
    load_model("sotfmax");
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("did you mean softmax?"));
  }
  try {
    load_model("nothing_like_it_at_all");
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("stitchwork datasets"));
  }
}

TEST(Model, AFolderOfDatasetsThatIsNotThereIsAnError) {
  setenv("STITCHWORK_DATASETS", "/no/such/folder", 1);
  EXPECT_THROW(datasets(), Error);
  unsetenv("STITCHWORK_DATASETS");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
