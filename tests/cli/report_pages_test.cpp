// Reports that lead to pages of `stitchwork view`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "core/base/file.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::run_command;

class ReportPages : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / "report_pages_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void experiment(const std::string& variants) const {
    write_file(
        path("e.json"),
        R"({"schema":"stitchwork.experiment/1","name":"e","workloads":["fig7","softmax_tiny"],"backend":"model","variants":[)" +
            variants + "]}");
    const CommandResult ran = run_command({"experiment", "run", path("e.json"), "--db", path("e.db")});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  std::set<std::string> links(const std::string& page) const {
    const std::regex link(R"re(<a href="([^"#][^"]*)")re");
    std::set<std::string> found;
    for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at)
      found.insert((*at)[1]);
    return found;
  }

  fs::path folder_;
};

constexpr const char* kVariants =
    R"({"name":"XLA","planner":"xla"},{"name":"paper","planner":"astitch","set":{"mapping":"paper"}},{"name":"A & B","planner":"astitch"})";

TEST_F(ReportPages, EveryTrialAndKernelLeadsToItsPlan) {
  experiment(kVariants);
  const CommandResult made =
      run_command({"report", path("e.db"), "-o", path("report.html"), "--pages", path("pages")});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.err, IsEmpty());
  const std::set<std::string> found = links(read_file(path("report.html")));
  EXPECT_TRUE(found.contains("pages/fig7-v100-sxm2.html#plan=XLA&amp;kernel=k2"));
  EXPECT_TRUE(found.contains("pages/softmax_tiny-v100-sxm2.html#plan=A%20%26%20B"));
  for (const std::string& link : found)
    EXPECT_TRUE(fs::exists(folder_ / link.substr(0, link.find('#')))) << link;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "pages"), fs::directory_iterator()), 2);
  const CommandResult text =
      run_command({"report", path("e.db"), "-o", path("report.md"), "--pages", path("pages")});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(read_file(path("report.md")),
              HasSubstr("[fig7 on v100-sxm2: XLA](pages/fig7-v100-sxm2.html#plan=XLA)"));
}

TEST_F(ReportPages, WithoutPagesAReportLeadsNowhere) {
  experiment(kVariants);
  ASSERT_EQ(run_command({"report", path("e.db"), "-o", path("report.html")}).exit_code, 0);
  EXPECT_THAT(links(read_file(path("report.html"))), IsEmpty());
}

TEST_F(ReportPages, APlanThatTheStoreCannotTellAgainIsSaid) {
  ASSERT_EQ(run_command({"plan", "softmax_tiny", "-o", path("plan.json")}).exit_code, 0);
  ASSERT_EQ(run_command({"run", "--plan", path("plan.json"), "--db", path("runs.db")}).exit_code, 0);
  const CommandResult made =
      run_command({"report", path("runs.db"), "-o", path("report.html"), "--pages", path("pages")});
  EXPECT_EQ(made.exit_code, 0);
  EXPECT_THAT(made.err, HasSubstr("no page of softmax_tiny on v100-sxm2"));
  EXPECT_THAT(made.err, HasSubstr("it ran a plan that was given as a file"));
  EXPECT_THAT(links(read_file(path("report.html"))), IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace stitchwork
