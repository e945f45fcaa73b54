#include <gmock/gmock.h>

#include <filesystem>
#include <regex>

#include "core/base/file.h"
#include "experiments/view_module.h"
#include "figures/data/load.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_command;

class View : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Module& module = load_module(kViewModule); module.handle == nullptr) {
      // Without Qt the module is not built: then its absence is named. Where it was built, it has to load.
      ASSERT_EQ(module.problem, "is not installed");
      const CommandResult said = run_command({"view", "fig7", "-o", file});
      EXPECT_EQ(said.exit_code, 1);
      EXPECT_THAT(
          said.err,
          HasSubstr("graphs are drawn by stitchwork_view.so, which is not installed; it is part of the "
                    "package stitchwork-gui, and of a build with Qt 6 (-DSTITCHWORK_GUI=ON)"));
      GTEST_SKIP() << "built without Qt";
    }
  }
  void TearDown() override { std::filesystem::remove(file); }
  std::string file = ::testing::TempDir() + "view_test.html";
};

TEST_F(View, OnePageHasEveryPlannersGraphAndKernelsAndWhy) {
  const CommandResult said = run_command({"view", "fig7", "--planners", "xla,astitch", "-o", file});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  const std::string page = read_file(file);
  EXPECT_THAT(page, HasSubstr("id=\"p0\" checked><label for=\"p0\"><b>xla</b>"));
  EXPECT_THAT(page, HasSubstr("id=\"p1\"><label for=\"p1\"><b>astitch</b>"));
  const std::string first = page.substr(page.find("plan p0"), page.find("plan p1") - page.find("plan p0"));
  const std::string second = page.substr(page.find("plan p1"));
  for (const std::string* section : {&first, &second}) {
    EXPECT_THAT(*section, HasSubstr("<svg"));
    EXPECT_THAT(*section, HasSubstr("k0"));
    EXPECT_THAT(*section, HasSubstr("<summary>why: "));
  }
  EXPECT_THAT(page, HasSubstr("<h2>Roofline</h2>\n<figure"));
  EXPECT_THAT(page, HasSubstr("<li>astitch: peak "));
  EXPECT_THAT(page, HasSubstr("MiB (modelled)"));
  EXPECT_THAT(first, HasSubstr("DRAM bandwidth"));
  EXPECT_THAT(first, HasSubstr("xla."));
  EXPECT_THAT(second, HasSubstr("astitch."));
}

TEST_F(View, PageNeedsNoScriptAndNoNetwork) {
  ASSERT_EQ(run_command({"view", "softmax_tiny", "-o", file}).exit_code, 0);
  const std::string page = read_file(file);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  const std::regex fetched(R"((src|href)\s*=\s*"(?!#)|@import|url\((?!#))");
  std::smatch found;
  EXPECT_FALSE(std::regex_search(page, found, fetched)) << found.str();
}

TEST_F(View, LoopsAndTheirKernelsAreThere) {
  const std::string model = ::testing::TempDir() + "view_loop.hlo";
  write_file(model, R"(HloModule loop
cond { c = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(5)  ROOT lt = pred[] compare(i, n), direction=LT }
body { b = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(b), index=0
  v = f32[64] get-tuple-element(b), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  w = f32[64] tanh(v)  ROOT t = (s32[], f32[64]) tuple(j, w) }
ENTRY main { x = f32[64] parameter(0)  zero = s32[] constant(0)  t = (s32[], f32[64]) tuple(zero, x)
  loop = (s32[], f32[64]) while(t), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(loop), index=1 })");
  ASSERT_EQ(run_command({"view", model, "--planners", "astitch", "-o", file}).exit_code, 0);
  EXPECT_THAT(read_file(file), HasSubstr("in body × 5"));
  std::filesystem::remove(model);
}

TEST_F(View, WrongPlannersAreRefusedBeforeAnythingIsWritten) {
  const CommandResult unknown = run_command({"view", "fig7", "--planners", "astich", "-o", file});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("no planner is called 'astich'"));
  const CommandResult twice = run_command({"view", "fig7", "--planners", "xla,xla", "-o", file});
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.err, HasSubstr("xla is given twice"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace stitchwork
