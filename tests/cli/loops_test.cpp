// Loops as commands tell them: trips that a model does not say, launches of each, and loops that do not end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "codegen/compile/compiler.h"
#include "core/hlo/npy.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_command;

class LoopCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("loops_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// tanh again and again, from i = 0 while i < the parameter n; `step` is what i grows by.
  std::string model(int step) {
    std::ofstream(path("loop.hlo"))
        << "HloModule loop\n"
           "more { s = (s32[], f32[64], s32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
           " n = s32[] get-tuple-element(s), index=2\n ROOT c = pred[] compare(i, n), direction=LT }\n"
           "body { s = (s32[], f32[64], s32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
           " x = f32[64] get-tuple-element(s), index=1\n n = s32[] get-tuple-element(s), index=2\n"
           " t = f32[64] tanh(x)\n o = s32[] constant("
        << step
        << ")\n j = s32[] add(i, o)\n ROOT r = (s32[], f32[64], s32[]) tuple(j, t, n) }\n"
           "ENTRY e { x = f32[64] parameter(0)\n n = s32[] parameter(1)\n zero = s32[] constant(0)\n"
           " a = (s32[], f32[64], s32[]) tuple(zero, x, n)\n"
           " w = (s32[], f32[64], s32[]) while(a), condition=more, body=body\n"
           " ROOT r = f32[64] get-tuple-element(w), index=1 }\n";
    Literal n = Literal::zeros(Shape::array(DType::kS32, {}));
    n.set_double(0, kTrips);
    write_npy(path("0.npy"), Literal::zeros(Shape::array(DType::kF32, {64})));
    write_npy(path("1.npy"), n);
    return path("loop.hlo");
  }

  static constexpr int kTrips = 7;
  fs::path folder_;
};

TEST_F(LoopCommands, OneThatDoesNotEndIsGivenUpAndSaysAfterHowManyTrips) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "no compiler";
  const CommandResult said = run_command(
      {"run", model(0), "--inputs", folder_.string(), "--max-trips", "50", "--db", path("runs.db")});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
  EXPECT_THAT(said.err, AllOf(HasSubstr("loop w goes on after 50 trips"), HasSubstr("--max-trips")));
}

TEST_F(LoopCommands, CompareSaysWhichTripsItDoesNotKnowAndTakesThem) {
  const std::string loop = model(1);
  const CommandResult unknown = run_command({"compare", loop, "--planners", "xla"});
  EXPECT_THAT(unknown.out, HasSubstr("loops: w trips unknown: counted once (--trips w=N)"));
  const CommandResult told = run_command({"compare", loop, "--planners", "xla", "--trips", "w=7"});
  EXPECT_THAT(told.out, AllOf(HasSubstr("loops: w 7 trips"), Not(HasSubstr("unknown"))));
  EXPECT_THAT(run_command({"compare", loop, "--trips", "v=7"}).err, HasSubstr("v"));
  EXPECT_THAT(run_command({"compare", loop, "--trips", "w"}).err, HasSubstr("expected LOOP=N"));
}

/// Launches of memory-intensive kernels as a run counted them.
std::int64_t launches_of(const nlohmann::json& run) {
  std::int64_t launches = 0;
  for (const auto& kernel : run.at("kernels")) launches += kernel.at("launches").get<std::int64_t>();
  for (const auto& part : run.at("computations"))
    for (const auto& kernel : part.at("kernels")) launches += kernel.at("launches").get<std::int64_t>();
  return launches;
}

TEST_F(LoopCommands, WhatCompareSaysIsLaunchedARunLaunches) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "no compiler";
  for (const char* planner : {"xla", "tvm", "astitch", "auto"}) {
    const auto rows = nlohmann::json::parse(
        run_command({"compare", model(1), "--planners", planner, "--trips", "w=7", "--json"}).out);
    const CommandResult ran = run_command({"run", path("loop.hlo"), "--planner", planner, "--trips", "w=7",
                                           "--inputs", folder_.string(), "--db", path("runs.db"), "--json"});
    ASSERT_EQ(ran.exit_code, 0) << ran.out;
    const std::int64_t launched = launches_of(nlohmann::json::parse(ran.out));
    EXPECT_EQ(rows.at("rows").at(0).at("dynamic_memory_kernels"), launched) << planner;
    EXPECT_GE(launched, kTrips) << planner;
  }
}

TEST_F(LoopCommands, ARunSaysHowManyLibraryCallsItsLoopsMade) {
  if (!find_nvrtc() && !find_clang()) GTEST_SKIP() << "no compiler";
  std::ofstream(path("products.hlo"))
      << "HloModule products\n"
         "more { s = (s32[], f32[8,8]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
         " n = s32[] constant(5)\n ROOT c = pred[] compare(i, n), direction=LT }\n"
         "body { s = (s32[], f32[8,8]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
         " x = f32[8,8] get-tuple-element(s), index=1\n"
         " d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n t = f32[8,8] "
         "tanh(d)\n"
         " o = s32[] constant(1)\n j = s32[] add(i, o)\n ROOT r = (s32[], f32[8,8]) tuple(j, t) }\n"
         "ENTRY e { x = f32[8,8] parameter(0)\n zero = s32[] constant(0)\n"
         " a = (s32[], f32[8,8]) tuple(zero, x)\n w = (s32[], f32[8,8]) while(a), condition=more, body=body\n"
         " ROOT r = f32[8,8] get-tuple-element(w), index=1 }\n";
  EXPECT_THAT(run_command({"run", path("products.hlo"), "--planner", "xla", "--db", path("runs.db")}).out,
              HasSubstr("loops and branches, beside their kernels: 5 library calls, gaps"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
