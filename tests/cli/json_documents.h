// What a command prints under --json, held to its schema in docs/schema/.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"

namespace stitchwork::testing {

class JsonDocuments : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("json_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    setenv("XDG_DATA_HOME", folder_.c_str(), 1);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Runs with --json added; the document, held to its schema.
  nlohmann::json expect_document(std::vector<std::string> words, const std::string& schema,
                                 int exit_code = 0) {
    words.emplace_back("--json");
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.out << result.err;
    const auto document = nlohmann::json::parse(result.out, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << result.out;
    EXPECT_THAT(JsonSchema::read("docs/schema/" + schema + ".schema.json").problems(document),
                ::testing::IsEmpty());
    return document;
  }
  std::filesystem::path folder_;
};

}  // namespace stitchwork::testing
