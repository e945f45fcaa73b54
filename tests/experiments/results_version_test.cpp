// scripts/results_version.cmake on a copy of the tree: what changes the version of results, and what does
// not.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "codegen/compile/process.h"
#include "core/base/file.h"
#include "core/base/version.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;

class ResultsVersion : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_program("cmake").empty()) GTEST_SKIP() << "no cmake in PATH";
    tree_ = testing::test_folder();
    const fs::path source = STITCHWORK_SOURCE_DIR;
    for (const char* folder :
         {"core", "occupancy_model", "analysis", "simulator", "codegen", "runtime", "experiments"})
      fs::copy(source / folder, tree_ / folder, fs::copy_options::recursive);
    for (const char* folder : {"gui", "docs", "cli"}) fs::create_directory(tree_ / folder);
  }

  std::string version() const {
    const std::string out = (tree_ / "out.cpp").string();
    const ProcessResult made =
        run_process({"cmake", "-DOUT=" + out, "-DSOURCE=" + tree_.string(), "-P",
                     std::string(STITCHWORK_SOURCE_DIR) + "/scripts/results_version.cmake"});
    EXPECT_EQ(made.exit_code, 0) << made.output;
    return read_file(out);
  }

  void append(const std::string& file) const { std::ofstream(tree_ / file, std::ios::app) << "\n"; }

  fs::path tree_;
};

TEST_F(ResultsVersion, IsThatOfTheProgram) {
  EXPECT_NE(version().find('"' + results_version() + '"'), std::string::npos)
      << "the sources have changed since this program was built, or the build asked other files";
}

TEST_F(ResultsVersion, ChangesWithEveryPartThatNumbersFollowFrom) {
  std::string before = version();
  for (const char* file :
       {"core/graph/op_table.cpp", "occupancy_model/timing.cpp", "occupancy_model/devices/t4.json",
        "analysis/judge/cost.cpp", "simulator/launch/run.cpp", "simulator/CMakeLists.txt",
        "codegen/lower.cpp", "runtime/run.h", "experiments/trial.cpp", "experiments/trial_metrics.cpp"}) {
    append(file);
    const std::string after = version();
    EXPECT_NE(after, before) << file;
    before = after;
  }
  // A file of another name or place is another source, too.
  fs::rename(tree_ / "analysis/judge/cost.cpp", tree_ / "analysis/costs.cpp");
  EXPECT_NE(version(), before);
}

TEST_F(ResultsVersion, DoesNotChangeWithWhatOnlyShowsThem) {
  const std::string before = version();
  const fs::file_time_type written = fs::last_write_time(tree_ / "out.cpp");
  for (const char* file : {"gui/main_window.cpp", "docs/store.md", "cli/run.cpp", "experiments/report.cpp",
                           "experiments/astitch/paper.json"})
    append(file);
  EXPECT_EQ(version(), before);
  EXPECT_EQ(fs::last_write_time(tree_ / "out.cpp"), written) << "the same text is not written again";
  fs::last_write_time(tree_ / "core/graph/op_table.cpp", fs::file_time_type::clock::now());
  EXPECT_EQ(version(), before) << "contents count, not times";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
