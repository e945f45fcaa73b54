// As json_schema_test.cpp, for the document that takes minutes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace {

TEST(JsonDocumentsSlow, Demo) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "json_demo";
  std::filesystem::remove_all(folder);
  const testing::CommandResult result = testing::run_command({"demo", "--folder", folder.string(), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_THAT(testing::JsonSchema::read("docs/schema/demo.schema.json").problems(document),
              ::testing::IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(folder / "report.html"));
}

}  // namespace
}  // namespace stitchwork
