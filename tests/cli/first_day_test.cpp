// Small habits of a first day: each of these did something else once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "codegen/compile/compiler.h"
#include "core/base/file.h"
#include "core/base/on_interrupt.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::run_command;

class FirstDay : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("first_day_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("XDG_DATA_HOME", folder_.c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(FirstDay, AFolderOfKernelsHasThoseOfItsLastModelAlone) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "no compiler";
  write_file(path("notes.cu"), "mine");
  ASSERT_EQ(run_command({"compile", "softmax_tiny", "-p", "xla", "-o", folder_.string()}).exit_code, 0);
  ASSERT_EQ(run_command({"compile", "gelu_tiny", "-p", "xla", "-o", folder_.string()}).exit_code, 0);
  const auto launch = nlohmann::json::parse(read_file(path("launch.json")));
  std::set<std::string> listed{"notes.cu", "launch.json"}, there;
  for (const auto& kernel : launch["kernels"]) listed.insert({kernel["cuda"], kernel["ptx"]});
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.is_regular_file()) there.insert(entry.path().filename().string());
  EXPECT_EQ(there, listed);
}

TEST_F(FirstDay, ALaunchListThatNamesFilesElsewhereRemovesNone) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "no compiler";
  fs::create_directories(folder_ / "out");
  write_file(path("kept.cu"), "mine");
  write_file(path("out/launch.json"),
             R"({"schema":"stitchwork.launch/1","kernels":[{"cuda":"../kept.cu","ptx":3},7]})");
  ASSERT_EQ(run_command({"compile", "softmax_tiny", "-o", path("out")}).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "kept.cu"));
}

TEST_F(FirstDay, OutputsThatAreAllNanAreNoProof) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "no compiler";
  write_file(path("nan.hlo"),
             "HloModule nan\nENTRY main {\n x = f32[64] parameter(0)\n a = f32[64] abs(x)\n"
             " n = f32[64] negate(a)\n o = f32[] constant(1)\n b = f32[64] broadcast(o), dimensions={}\n"
             " s = f32[64] subtract(n, b)\n ROOT r = f32[64] log(s) }\n");
  const CommandResult said = run_command({"run", path("nan.hlo"), "--check"});
  EXPECT_THAT(said.out, HasSubstr("check: says nothing: all 64 elements are NaN in both"));
  EXPECT_THAT(said.out, Not(HasSubstr("check: ok")));
}

TEST_F(FirstDay, ANewFolderOfAStoreIsTold) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "no compiler";
  const std::vector<std::string> words = {"run", "softmax_tiny", "--db", path("new/runs.db")};
  EXPECT_THAT(run_command(words).err, HasSubstr(path("new") + " is a new folder"));
  EXPECT_THAT(run_command(words).err, Not(HasSubstr("is a new folder")));
}

TEST_F(FirstDay, ViewShowsASavedPlan) {
  ASSERT_EQ(run_command({"plan", "fig7", "-p", "xla", "-o", path("plan.json")}).exit_code, 0);
  const auto planners = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"-o", path("view.html"), "--json"});
    const CommandResult said = run_command(words);
    EXPECT_EQ(said.exit_code, 0) << said.out;
    std::vector<std::string> names;
    const auto document = nlohmann::json::parse(said.out);
    for (const auto& plan : document["plans"]) names.push_back(plan["planner"]);
    return names;
  };
  EXPECT_THAT(planners({"view", "--plan", path("plan.json")}), ::testing::ElementsAre("xla"));
  EXPECT_THAT(planners({"view", "--plan", path("plan.json"), "--planners", "astitch"}),
              ::testing::ElementsAre("xla", "astitch"));
}

TEST_F(FirstDay, APlanFindsItsModelFromAnotherFolderOrSaysThatItIsNotThere) {
  fs::create_directories(folder_ / "made");
  write_file(path("m.hlo"), "HloModule m\nENTRY e { p = f32[8] parameter(0)  ROOT r = f32[8] tanh(p) }\n");
  const fs::path before = fs::current_path();
  fs::current_path(folder_ / "made");
  const CommandResult made = run_command("plan ../m.hlo -o plan.json");
  fs::current_path(folder_);
  const CommandResult found = run_command("verify made/plan.json");
  fs::current_path(before);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(found.exit_code, 0) << found.err;
  fs::rename(path("m.hlo"), path("moved.hlo"));
  for (const char* command : {"verify ", "explain r --plan ", "plan --plan "})
    EXPECT_THAT(run_command(command + path("made/plan.json")).err,
                HasSubstr(path("made/plan.json") + ": its model ../m.hlo is not there; say where it is now"))
        << command;
  EXPECT_EQ(run_command("explain " + path("moved.hlo") + " r --plan " + path("made/plan.json")).exit_code, 0);
}

TEST_F(FirstDay, AnOpOfASavedPlanIsExplainedWhereverThePlanStands) {
  const std::string plan = path("plan.json");
  ASSERT_EQ(run_command("plan fig7 -p xla -o " + plan).exit_code, 0);
  const std::string said = run_command("explain fig7 power.1 -p xla").out;
  EXPECT_THAT(said, HasSubstr("power.1 = "));
  for (const std::string& line :
       {"explain --plan " + plan + " power.1", "explain power.1 --plan " + plan,
        "explain fig7 power.1 --plan " + plan, "explain fig7 --plan " + plan + " power.1"})
    EXPECT_EQ(run_command(line).out, said) << line;
}

TEST_F(FirstDay, WhereNothingCanBeWrittenNothingIsRun) {
  write_file(path("file"), "text");
  const std::string db = " --db " + path("runs.db");
  for (const std::string& line :
       {"run fig7 --trace " + path("no/t.json") + db, "run fig7 --outputs " + path("file") + db,
        "run fig7 --outputs " + path("file/out") + db}) {
    const CommandResult said = run_command(line);
    EXPECT_EQ(said.exit_code, 1) << line;
    EXPECT_THAT(said.err, ::testing::MatchesRegex("stitchwork: .* cannot be (written|made): .*\n")) << line;
    EXPECT_FALSE(fs::exists(path("runs.db"))) << line;
  }
  EXPECT_EQ(run_command("run fig7 --outputs " + path("new/out") + db).exit_code, 0);
  EXPECT_TRUE(fs::exists(path("new/out/out0.npy")));
}

TEST_F(FirstDay, WhatIsSaidOfEveryLayerIsSaidOfAFew) {
  std::ostringstream out, err;
  Executable executable;
  for (int i = 0; i < 7; ++i)
    executable.checks.push_back(
        {"compile", fmt::format("add_{}", i), "", {false, "compile.spills", "spilled"}});
  executable.checks.push_back({"compile", "sub_1", "", {false, "compile.retry", "again"}});
  print_checks(Cli{out, err}, executable);
  EXPECT_THAT(err.str(), ::testing::AllOf(HasSubstr("add_3: spilled"), Not(HasSubstr("add_4: spilled")),
                                          HasSubstr("3 more [compile.spills] (--json)\n"),
                                          HasSubstr("sub_1: again"), Not(HasSubstr("more [compile.retry]"))));
}

TEST_F(FirstDay, AFindingOfPtxStandsAlone) {
  write_file(path("k.ptx"), R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
)");
  const std::vector<std::string> words = {"ptx", "run", path("k.ptx"), "--block", "32", "--arg"};
  const auto with = [&](const char* buffer) {
    std::vector<std::string> all = words;
    all.emplace_back(buffer);
    return run_command(all);
  };
  EXPECT_THAT(with("buf:u32:32:zero").out, HasSubstr("inst_executed"));
  const CommandResult beyond = with("buf:u32:31:zero");
  EXPECT_EQ(beyond.exit_code, 1);
  EXPECT_EQ(beyond.out, "");
  EXPECT_THAT(beyond.err, HasSubstr("k.ptx:12: out-of-bounds"));
}

TEST_F(FirstDay, MlirIsRefusedWithAWay) {
  write_file(path("m.mlir"), "#loc = loc(unknown)\nmodule @jit_f {}\n");
  const CommandResult said = run_command({"info", path("m.mlir")});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.err, HasSubstr("this is MLIR, not HLO text; convert it (convert_stablehlo"));
}

using FirstDayDeathTest = FirstDay;

TEST_F(FirstDayDeathTest, AnInterruptIsOneLineAndLeavesNoLock) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string lock = path("runs.db.lock"), other = path("other.lock");
  const auto interrupted = [&] {
    exit_on_interrupt();
    std::ofstream(lock) << "";
    std::ofstream(other) << "";
    const RemovedOnInterrupt removed(lock);
    { const RemovedOnInterrupt no_longer(other); }
    std::raise(SIGINT);
  };
  EXPECT_EXIT(interrupted(), ::testing::ExitedWithCode(130), "^stitchwork: interrupted\n$");
  EXPECT_FALSE(fs::exists(lock));
  EXPECT_TRUE(fs::exists(other));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
