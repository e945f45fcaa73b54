// What compilers make of models today, beside our planners.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "codegen/compile/process.h"
#include "core/base/error.h"
#include "experiments/reproduce.h"

namespace stitchwork {
namespace TEST_FILE {
namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const fs::path kDumps = fs::path(STITCHWORK_SOURCE_DIR) / "tests/data/dumps";

const ReproducedValue* value(const ReproducedTable& table, const std::string& row,
                             const std::string& column) {
  for (const ReproducedValue& one : table.values)
    if (one.row == row && one.column == column) return &one;
  return nullptr;
}

TEST(ReproduceToday, CompilersKernelsStandBesidePlanners) {
  const TemporaryFolder folder;
  for (const char* peer : {"xla", "inductor"})
    fs::create_directories(folder.path() / "dumps" / peer / "a100-sxm-40");
  fs::create_directory_symlink(kDumps / "fig7-a100", folder.path() / "dumps/xla/a100-sxm-40/fig7");
  fs::create_directory_symlink(kDumps / "fig7-inductor-a100",
                               folder.path() / "dumps/inductor/a100-sxm-40/fig7");
  fs::create_directory_symlink(kDumps / "softmax-a100", folder.path() / "dumps/xla/a100-sxm-40/softmax");
  ReproduceOptions options;
  options.db = (folder.path() / "today.db").string();
  options.dumps = (folder.path() / "dumps").string();
  options.workloads = {"fig7", "softmax"};
  options.devices = {"a100-sxm-40"};
  options.only = {"memory", "kernels"};
  const Reproduction made = reproduce("today", options);
  ASSERT_EQ(made.tables.size(), 2u);
  const ReproducedTable &memory = made.tables[0], &kernels = made.tables[1];
  EXPECT_EQ(memory.id, "memory-a100-sxm-40");
  EXPECT_EQ(value(memory, "fig7", "XLA today")->ours, 1);
  for (const char* variant : {"Inductor", "xla", "tvm", "astitch", "auto"})
    ASSERT_TRUE(value(memory, "fig7", variant)->ours) << variant;
  // One kernel for four, all of them in the simulator.
  EXPECT_EQ(value(kernels, "fig7", "XLA today")->ours, 4);
  EXPECT_EQ(value(kernels, "fig7", "Inductor")->ours, 2);
  EXPECT_EQ(value(kernels, "fig7", "astitch")->ours, 1);
  EXPECT_GT(value(memory, "fig7", "astitch")->ours.value(), 1.5);
  EXPECT_THAT(value(memory, "fig7", "astitch")->method, HasSubstr("simulated"));
  // What is missing is named, and means are over what all have.
  EXPECT_THAT(made.failures,
              ElementsAre(AllOf(HasSubstr("softmax, Inductor, a100-sxm-40"), HasSubstr("o such file"))));
  EXPECT_FALSE(value(memory, "softmax", "Inductor")->ours);
  EXPECT_EQ(value(memory, "geometric mean", "astitch")->ours, value(memory, "fig7", "astitch")->ours);

  // The same again runs nothing anew, but what was missing and is there now.
  fs::create_directory_symlink(kDumps / "softmax-inductor-a100",
                               folder.path() / "dumps/inductor/a100-sxm-40/softmax");
  std::size_t trials = 0;
  options.progress = [&](std::size_t, std::size_t of, double, const std::string&) {
    trials = std::max(trials, of);
  };
  const Reproduction again = reproduce("today", options);
  EXPECT_TRUE(again.failures.empty());
  EXPECT_EQ(trials, 1u);
  EXPECT_TRUE(value(again.tables[0], "softmax", "Inductor")->ours);
}

TEST(ReproduceToday, WithoutDumpsSaysHowToMakeThem) {
  const TemporaryFolder folder;
  ReproduceOptions options;
  options.db = (folder.path() / "today.db").string();
  const auto refusal = [&] {
    try {
      reproduce("today", options);
      return std::string("none");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refusal(), AllOf(HasSubstr("no folder of dumps is given"), HasSubstr("scripts/peers/all")));
  options.dumps = folder.path().string();
  EXPECT_THAT(refusal(), AllOf(HasSubstr(folder.path().string()), HasSubstr("has none of the dumps")));
  options.devices = {"t4"};
  EXPECT_THAT(refusal(), HasSubstr("is not of t4"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
