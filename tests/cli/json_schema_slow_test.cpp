// As json_runs_test.cpp, for the document that takes minutes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "figures/data/renderer.h"
#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace TEST_FILE {

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
      {"reproduce", "astitch", "--quick", "--db", folder + "/r.db", "-o", folder + "/r.html", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_THAT(testing::JsonSchema::read("docs/schema/reproduction.schema.json").problems(document),
              ::testing::IsEmpty());
  EXPECT_GE(document["tables"].size(), 13u);
  for (const auto& table : document["tables"])
    for (const auto& value : table["values"])
      EXPECT_FALSE(value["ours"].is_null()) << table["id"] << ", " << value["row"] << ", " << value["column"];
  const std::string page = read_file(folder + "/r.html");
  EXPECT_NE(page.find("<td class=\"n\">69.9 %</td>"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos) << "one file, no network";
  EXPECT_NE(page.find("id=\"fig16_efficiency\"><svg"), std::string::npos);
  // Again: nothing is run, and modelled and simulated numbers are the same to the byte.
  const testing::CommandResult again = testing::run_command(
      {"reproduce", "astitch", "--quick", "--db", folder + "/r.db", "-o", folder + "/again.html", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(read_file(folder + "/again.html"), page);
  // The report of the store is the same report.
  for (const std::string extension : {"html", "md"})
    EXPECT_EQ(testing::run_command(
                  {"report", folder + "/r.db", "--paper", "astitch", "-o", folder + "/report." + extension})
                  .exit_code,
              0);
  EXPECT_EQ(read_file(folder + "/report.html"), page);
  EXPECT_NE(read_file(folder + "/report.md").find("| CRNN | MEM saved | 69.9 % |"), std::string::npos);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
