// What the commands print of a store whose trials differ in one setting each: a row each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::run_command;

TEST(TrialRows, EachSettingIsARowOfShowCompareAndLimits) {
  const fs::path folder = fs::path(::testing::TempDir()) / "trial_rows";
  fs::remove_all(folder);
  const std::string db = (folder / "runs.db").string();
  const std::vector<std::vector<std::string>> settings = {{},
                                                          {"--device", "t4"},
                                                          {"--seed", "1"},
                                                          {"--set", "mapping=paper"},
                                                          {"--cache", "warm"},
                                                          {"--mode", "sampled"},
                                                          {"--fast-math"}};
  for (const std::vector<std::string>& more : settings) {
    std::vector<std::string> words = {"run", "softmax_tiny", "--db", db};
    words.insert(words.end(), more.begin(), more.end());
    ASSERT_EQ(run_command(words).exit_code, 0) << run_command(words).err;
  }
  const auto rows_of = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n') - 3;  // head, line under it, what follows the table
  };
  const auto rows = static_cast<std::ptrdiff_t>(settings.size());
  const std::string shown =
      run_command({"experiment", "show", "adhoc", "--metric", "kernel_us", "--db", db}).out;
  EXPECT_EQ(rows_of(shown), rows) << shown;
  for (const char* setting :
       {" on t4", " seed 1", "mapping=paper", "cache warm", "mode sampled", "fast_math"})
    EXPECT_THAT(shown, HasSubstr(setting));
  const std::string compared =
      run_command({"experiment", "compare", "adhoc", "adhoc", "--metric", "kernel_us", "--db", db}).out;
  EXPECT_EQ(rows_of(compared), rows) << compared;
  const auto limits =
      nlohmann::json::parse(run_command({"experiment", "limits", "adhoc", "--db", db, "--json"}).out);
  ASSERT_EQ(limits["trials"].size(), settings.size());
  EXPECT_EQ(limits["trials"][0]["kernels"][0]["parts"][0]["method"], "simulated");
  const auto listed = nlohmann::json::parse(run_command({"experiment", "list", "--db", db, "--json"}).out);
  EXPECT_EQ(listed["experiments"][0]["trials"], rows);
}

TEST(TrialRows, VersionNamesTheResults) {
  EXPECT_THAT(run_command(std::string("--version")).out, HasSubstr("results " + results_version()));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
