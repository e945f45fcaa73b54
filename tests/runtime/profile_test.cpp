// Counters read by Nsight Compute: its text, and a program in its place.
#include "runtime/cuda/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/compile/process.h"
#include "core/base/error.h"

namespace stitchwork::cuda {
namespace TEST_FILE {
namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// As Nsight Compute 2024 writes it: its own lines, names, units, a line a launch.
constexpr const char* kCsv =
    "==PROF== Connected to process 17 (/usr/bin/stitchwork)\n"
    "==PROF== Profiling \"k\" - 0: 0%....50%....100% - 4 passes\n"
    "\"ID\",\"Process ID\",\"Kernel "
    "Name\",\"dram__sectors_read.sum\",\"sm__warps_active.avg.pct_of_peak_sustained_active\","
    "\"smsp__inst_executed.sum\"\n"
    "\"\",\"\",\"\",\"sector\",\"%\",\"inst\"\n"
    "\"0\",\"17\",\"k\",\"1,024\",\"62.5\",\"4,096\"\n"
    "\"1\",\"17\",\"k\",\"7\",\"n/a\",\"12\"\n"
    "==PROF== Disconnected from process 17\n";

TEST(Profile, ReadsALineALaunchAndLeavesOutWhatIsNoNumber) {
  const auto launches = parse_profile(kCsv);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_THAT(launches[0], ElementsAre(Pair("inst_executed", 4096), Pair("dram_read_transactions", 1024),
                                       Pair("achieved_occupancy", 0.625)));
  EXPECT_THAT(launches[1], ElementsAre(Pair("inst_executed", 12), Pair("dram_read_transactions", 7)));
  EXPECT_TRUE(parse_profile("==ERROR== nothing\n").empty());
  EXPECT_TRUE(parse_profile("").empty());
}

/// A program called ncu, where a toolkit would have it.
class StandIn {
 public:
  explicit StandIn(const std::string& script) {
    const fs::path file = folder_.path() / "bin" / "ncu";
    fs::create_directory(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\n" << script;
    fs::permissions(file, fs::perms::owner_all);
    ::setenv("CUDA_HOME", folder_.path().c_str(), 1);
  }
  ~StandIn() { ::unsetenv("CUDA_HOME"); }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

 private:
  TemporaryFolder folder_;
};

TEST(Profile, RunsTheCommandUnderNcu) {
  const StandIn ncu(std::string("while [ \"$1\" != --log-file ]; do shift; done\ncat > \"$2\" <<'END'\n") +
                    kCsv + "END\n");
  EXPECT_EQ(profile({"/bin/true"}, "k").size(), 2u);
}

TEST(Profile, AMetricThatTheGpuHasNotIsLeftOut) {
  const StandIn ncu(
      std::string("case \"$*\" in *dram__sectors_write.sum*) echo '==ERROR== Failed to find metric "
                  "dram__sectors_write.sum'; exit 1;; esac\n"
                  "while [ \"$1\" != --log-file ]; do shift; done\ncat > \"$2\" <<'END'\n") +
      kCsv + "END\n");
  EXPECT_EQ(profile({"/bin/true"}, "k").size(), 2u);
}

TEST(Profile, WhatNcuComplainsOfIsSaidInOneLine) {
  const StandIn ncu(
      "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; echo later; exit 1\n");
  try {
    profile({"/bin/true"}, "k");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("ncu profiled nothing: ==ERROR== ERR_NVGPUCTRPERM"));
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::cuda
