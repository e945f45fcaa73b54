// As json_schema_test.cpp, for the document that takes minutes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
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

TEST(ReproduceSlow, QuickTablesOfAstitchAreWhole) {
  const std::string folder = std::string(::testing::TempDir()) + "/reproduce_quick";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const testing::CommandResult result = testing::run_command(
      {"reproduce", "astitch", "--quick", "--db", folder + "/r.db", "-o", folder + "/r.md", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_THAT(testing::JsonSchema::read("docs/schema/reproduction.schema.json").problems(document),
              ::testing::IsEmpty());
  EXPECT_GE(document["tables"].size(), 7u);
  for (const auto& table : document["tables"])
    for (const auto& value : table["values"])
      EXPECT_FALSE(value["ours"].is_null()) << table["id"] << ", " << value["row"] << ", " << value["column"];
  EXPECT_NE(read_file(folder + "/r.md").find("| CRNN | MEM saved | 69.9 % |"), std::string::npos);
}

}  // namespace
}  // namespace stitchwork
