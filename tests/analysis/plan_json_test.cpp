#include "analysis/json/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "tests/support/graphs.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace TEST_FILE {

using Json = nlohmann::ordered_json;
using testing::dataset;
using ::testing::HasSubstr;

std::string text_of(const Graph& graph, const char* planner, bool decisions = false) {
  return plan_to_json(graph, make_plan(graph, device("v100"), planner, {.record_decisions = decisions}))
      .dump(2);
}

Error error_of(const Graph& graph, const std::string& text) {
  try {
    plan_from_json(graph, text, "plan.json");
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "accepted";
  return Error("");
}

TEST(PlanJson, ReadingGivesTheSamePlanBack) {
  for (const char* model : {"fig7", "column_sum", "bert_layer"})
    for (const char* planner : {"unfused", "xla", "astitch"}) {
      const Graph graph = dataset(model);
      const std::string text = text_of(graph, planner, true);
      const FusionPlan back = plan_from_json(graph, text, "plan.json");
      EXPECT_EQ(plan_to_json(graph, back).dump(2), text) << model << " " << planner;
    }
}

TEST(PlanJson, DocumentsConformToTheSchema) {
  const auto schema = testing::JsonSchema::read("docs/schema/plan.schema.json");
  for (const char* model : {"fig7", "column_sum", "row_64x30000", "bert_layer"})
    for (const char* planner : {"unfused", "xla", "astitch"}) {
      const auto problems = schema.problems(nlohmann::json::parse(text_of(dataset(model), planner, true)));
      EXPECT_THAT(problems, ::testing::IsEmpty()) << model << " " << planner;
    }
}

TEST(PlanJson, TheSchemaRefusesWhatIsMissingAndWhatIsForeign) {
  const auto schema = testing::JsonSchema::read("docs/schema/plan.schema.json");
  auto document = nlohmann::json::parse(text_of(dataset("fig7"), "xla"));
  document.erase("device");
  document["kernels"][0]["colour"] = "red";
  document["kernels"][0]["schemes"]["add.1"] = "sideways";
  document["kernels"][0]["grid"] = 0;
  EXPECT_EQ(schema.problems(document).size(), 4u);
}

TEST(PlanJson, HeaderNamesTheModel) {
  const Graph graph = dataset("fig7");
  const PlanHeader header = read_plan_header(text_of(graph, "xla"), "plan.json");
  EXPECT_EQ(header.model_path, graph.source);
  EXPECT_EQ(header.model_sha256, graph.source_sha256);
}

TEST(PlanJson, ComplaintsNameFileAndPath) {
  const Graph graph = dataset("fig7");
  Json json = Json::parse(text_of(graph, "xla"));
  json["kernels"][1]["groups"][0]["dominant"] = "power.77";
  const Error unknown = error_of(graph, json.dump());
  EXPECT_EQ(unknown.file(), "plan.json");
  EXPECT_THAT(unknown.message(), HasSubstr("kernels[1].groups[0].dominant: 'power.77' is no op of fig7"));

  json = Json::parse(text_of(graph, "xla"));
  json["kernels"][0].erase("grid");
  EXPECT_THAT(error_of(graph, json.dump()).message(), HasSubstr("kernels[0]: 'grid' is missing"));

  json = Json::parse(text_of(graph, "xla"));
  json["kernels"][0]["grid"] = "many";
  EXPECT_THAT(error_of(graph, json.dump()).message(),
              HasSubstr("kernels[0].grid: expected an integer, found string"));

  json = Json::parse(text_of(graph, "xla"));
  json["kernels"][0]["schemes"]["add.1"] = "sideways";
  EXPECT_THAT(error_of(graph, json.dump()).message(), HasSubstr("'sideways' is none of independent, local"));

  json = Json::parse(text_of(graph, "xla"));
  json["steps"][0]["id"] = "k9";
  EXPECT_THAT(error_of(graph, json.dump()).message(), HasSubstr("there is no kernel 'k9'"));

  json = Json::parse(text_of(graph, "xla"));
  json["schema"] = "stitchwork.plan/9";
  EXPECT_THAT(error_of(graph, json.dump()).message(), HasSubstr("is not stitchwork.plan/1"));
}

TEST(PlanJson, BrokenJsonIsReportedWithLineAndColumn) {
  const Error e = error_of(dataset("fig7"), "{\n  \"schema\": \"stitchwork.plan/1\",\n  oops\n}");
  EXPECT_EQ(e.line(), 3);
  EXPECT_EQ(e.column(), 3);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
