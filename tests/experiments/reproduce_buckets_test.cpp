// Sequences in buckets of lengths (Astra, Table 8).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/model.h"
#include "experiments/reproduce.h"
#include "tests/experiments/sample_trial.h"

namespace stitchwork {
namespace TEST_FILE {

class Buckets : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::test_folder();
    std::filesystem::create_directories(folder_ + "/p");
    std::filesystem::create_directories(folder_ + "/models");
    write_file(folder_ + "/p/e.json",
               R"({"schema":"stitchwork.experiment/1","name":"e","backend":"model","workloads":["fig7"],)"
               R"("devices":["v100-sxm2"],"variants":[{"planner":"unfused"},{"planner":"xla"}]})");
    write_file(
        folder_ + "/p/paper.json",
        R"({"schema":"stitchwork.paper/1","title":"t","device":"v100-sxm2","exports":"some program writes them",)"
        R"("rows":[{"row":"f","workload":"fig7"}],"artifacts":[{"id":"a","place":"Table 8","title":"t",)"
        R"("experiment":"e.json","rows":[{"row":"chain","workload":"chain_b16","buckets":[2,4]}],"columns":[)"
        R"({"column":"over","variant":"xla","metric":"total_us","speedup_over":"unfused","buckets":[2,4]}]}]})");
    ::setenv("STITCHWORK_EXPERIMENTS", folder_.c_str(), 1);
    options_.db = folder_ + "/runs.db";
    options_.models = folder_ + "/models";
  }
  void TearDown() override { ::unsetenv("STITCHWORK_EXPERIMENTS"); }

  /// A chain of `length` ops.
  std::string write_model(int length) const {
    std::string text = "HloModule chain\nENTRY e {\n v0 = f32[4096,1024] parameter(0)\n";
    for (int i = 1; i <= length; ++i)
      text += fmt::format(" {}v{} = f32[4096,1024] tanh(v{})\n", i == length ? "ROOT " : "", i, i - 1);
    std::string file = fmt::format("{}/models/chain_b16_t{}.hlo.gz", folder_, length);
    write_file(file, text + "}\n");
    return file;
  }

  std::string folder_;
  ReproduceOptions options_;
};

TEST_F(Buckets, EachSequenceAtItsLengthAgainstTheNextBuckets) {
  double exact[2], filled[2];
  for (const int b : {0, 1}) {
    const Graph graph = load_model(write_model(b == 0 ? 2 : 4)).graph;
    exact[b] = make_plan(graph, device("v100-sxm2"), "unfused").predicted_us;
    filled[b] = make_plan(graph, device("v100-sxm2"), "xla").predicted_us;
  }
  ASSERT_GT(exact[1], 1.5 * exact[0]);
  const Reproduction found = reproduce("p", options_);
  ASSERT_EQ(found.tables.at(0).values.size(), 1u);
  // Lengths 1 and 2, on average 1.5, and 3 and 4: 3.5, on the line through 2 and 4.
  const double slope = (exact[1] - exact[0]) / 2, sum = 2 * exact[0] + (-0.5 + 1.5) * slope;
  EXPECT_NEAR(*found.tables[0].values[0].ours, sum / (filled[0] + filled[1]), 1e-9);
  EXPECT_EQ(found.tables[0].values[0].row, "chain");
}

TEST_F(Buckets, ALengthThatIsMissingLeavesTheRowOut) {
  write_model(2);
  EXPECT_TRUE(reproduce("p", options_).tables.at(0).values.empty());
  std::filesystem::remove_all(folder_ + "/models");
  std::filesystem::create_directories(folder_ + "/models");
  EXPECT_THROW(reproduce("p", options_), Error) << "none of the exports";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
