// Compilers' dumps where plans are taken: plan, compare, diff, explain, view, run and the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using testing::CommandResult;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JsonSchema;
using ::testing::Not;
using testing::run_command;
using ::testing::UnorderedElementsAre;

const fs::path kDumps = fs::path(STITCHWORK_SOURCE_DIR) / "tests/data/dumps";

class PeerPlans : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("peer_plans_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    ::setenv("XDG_DATA_HOME", folder_.c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static json document(std::vector<std::string> words, const std::string& schema) {
    words.emplace_back("--json");
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    json parsed = json::parse(result.out, nullptr, false);
    EXPECT_THAT(JsonSchema::read("docs/schema/" + schema + ".schema.json").problems(parsed), IsEmpty());
    return parsed;
  }
  static void expect_refused(const std::vector<std::string>& words, const std::vector<std::string>& parts) {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
  }

  fs::path folder_;
  const std::string fig7 = (kDumps / "fig7-a100").string(), softmax = (kDumps / "softmax-v100").string(),
                    mlp = (kDumps / "mlp-a100").string();
};

TEST_F(PeerPlans, ArePlansWithTheCompilersCode) {
  const json plan = document({"plan", fig7}, "plan");
  EXPECT_EQ(plan["planner"], "xla jaxlib 0.10.2");
  EXPECT_EQ(plan["peer"]["method"], nullptr);
  EXPECT_EQ(plan["predicted_us"], nullptr);
  ASSERT_EQ(plan["kernels"].size(), 4u);
  const json& power = plan["kernels"][1];
  EXPECT_EQ(power["name"], "loop_power_fusion");
  EXPECT_EQ(power["code"]["module"], "kernels0.ptx");
  EXPECT_THAT(power["ops"].dump(), HasSubstr("power.1"));
  EXPECT_TRUE(power["groups"].empty());
  EXPECT_EQ(power["predicted_us"], nullptr);
  EXPECT_FALSE(power.contains("time_parts"));
  // The same of the user's own model: its names, its path.
  const json ours = document({"plan", "fig7", "--plan", fig7}, "plan");
  EXPECT_EQ(ours["model"]["path"], "fig7");
  EXPECT_EQ(ours["kernels"][1]["code"]["model_ops"]["power.1.1"], json::array({"power.1"}));
  EXPECT_THAT(run_command({"plan", mlp}).out,
              AllOf(HasSubstr("library lib:cublas-lt-matmul.3 dot"), HasSubstr("2 library calls")));

  expect_refused({"plan", "softmax", "--plan", fig7}, {"fig7-a100", "it has 4 parameters, the model 1"});
  expect_refused({"plan", fig7, "--planner", "xla"}, {"--planner is no option of a dump"});
  expect_refused({"plan", fig7, "--dump=cuda"}, {"--dump=cuda is of planners' kernels"});
  expect_refused({"compile", fig7, "-o", path("out")}, {"it cannot be compiled here"});
  expect_refused({"verify", fig7}, {"it cannot be verified"});
  ASSERT_EQ(run_command({"plan", fig7, "-o", path("saved.json")}).exit_code, 0);
  expect_refused({"verify", path("saved.json")}, {"a compiler made the plan", "give the dump itself"});
}

TEST_F(PeerPlans, StandInTheTableOfPlanners) {
  const json both = document({"compare", "fig7", "--planners", "xla,astitch", "--with", fig7}, "compare");
  ASSERT_EQ(both["rows"].size(), 3u);
  const json &ours = both["rows"][0], &theirs = both["rows"][2];
  EXPECT_EQ(theirs["planner"], "xla jaxlib 0.10.2");
  EXPECT_EQ(theirs["method"], "simulated");
  EXPECT_EQ(theirs["memory_kernels"], 4);
  EXPECT_GT(theirs["predicted_us"], theirs["memory_us"]);
  EXPECT_GT(theirs["dram_bytes"], 0);
  EXPECT_EQ(theirs["plan_ms"], nullptr);
  EXPECT_EQ(ours["method"], "modelled");
  EXPECT_EQ(ours["dump"], nullptr);
  EXPECT_EQ(ours["device"], theirs["device"]);  // planned for the dump's card
  const CommandResult said = run_command({"compare", "fig7", "--planners", "xla", "--with", fig7});
  EXPECT_THAT(said.out, AllOf(HasSubstr("xla jaxlib 0.10.2"), HasSubstr("simulated"), HasSubstr("modelled")));
  expect_refused({"compare", "softmax", "--planners", "xla", "--with", fig7}, {"fig7-a100", "parameters"});
  expect_refused({"compare", "fig7", "--planners", "xla", "--device", "v100", "--with", fig7},
                 {"sm_80", "v100-sxm2 is sm_70"});
  const json untimed =
      document({"compare", "fig7", "--planners", "xla", "--with", fig7, "--untimed"}, "compare");
  EXPECT_EQ(untimed["rows"][1]["predicted_us"], nullptr);
}

TEST_F(PeerPlans, DifferFromPlannersByWhatTheyFuse) {
  const std::string unfused = path("unfused.json");
  ASSERT_EQ(run_command({"plan", "softmax", "-p", "unfused", "-o", unfused}).exit_code, 0);
  const json changed = document({"diff", unfused, softmax, "--untimed"}, "diff");
  EXPECT_EQ(changed["a"]["method"], "modelled");
  EXPECT_EQ(changed["b"]["method"], nullptr);
  EXPECT_EQ(changed["b"]["predicted_us"], nullptr);
  EXPECT_EQ(changed["b"]["memory_kernels"], 3);
  // XLA has the subtraction with the exponential in kernels; unfused has each alone.
  const auto together = std::ranges::find_if(changed["boundaries"], [](const json& b) {
    return b["apart_in"] == "a" && b["consumer"] == "exponential.17";
  });
  ASSERT_NE(together, changed["boundaries"].end()) << changed["boundaries"].dump(1);
  EXPECT_EQ((*together)["together"]["rule"], "peer.kernel");
  EXPECT_EQ((*together)["apart"]["rule"], "unfused.one-op-a-kernel");

  const std::string stitched = path("stitched.json");
  ASSERT_EQ(run_command({"plan", "softmax", "-o", stitched}).exit_code, 0);
  const CommandResult said = run_command({"diff", softmax, stitched, "--untimed"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("memory kernels 3 -> 1"), HasSubstr("not run"),
                              HasSubstr("apart in A [peer.decision]"), HasSubstr("why is not known")));
  // A planner that has the same kernel.
  ASSERT_EQ(run_command({"plan", "softmax", "-p", "xla", "-o", path("xla.json")}).exit_code, 0);
  EXPECT_THAT(run_command({"diff", path("xla.json"), softmax, "--untimed"}).out, HasSubstr("the same ops"));
  expect_refused({"diff", unfused, fig7}, {"fig7-a100", "it has 4 parameters, the model 1"});
  ASSERT_EQ(run_command({"plan", "fig7", "--device", "a100-sxm-40", "-o", path("fig7.json")}).exit_code, 0);
  const json timed = document({"diff", path("fig7.json"), fig7}, "diff");
  EXPECT_EQ(timed["b"]["method"], "simulated");
  EXPECT_GT(timed["b"]["predicted_us"], 0);
  // Two cards, of one compiler and one model.
  EXPECT_THAT(run_command({"diff", softmax, (kDumps / "softmax-a100").string(), "--untimed"}).out,
              HasSubstr("memory kernels 3 -> 1"));
}

TEST_F(PeerPlans, ExplainWhereAnOpRuns) {
  const json power = document({"explain", "fig7", "power.1", "--plan", fig7}, "explain");
  ASSERT_EQ(power["placements"].size(), 1u);
  EXPECT_EQ(power["placements"][0]["name"], "loop_power_fusion");
  EXPECT_EQ(power["placements"][0]["role"], "compiled");
  EXPECT_THAT(power["placements"][0]["beside"].get<std::vector<std::string>>(),
              UnorderedElementsAre("divide.1", "broadcast.0"));
  EXPECT_THAT(power["became"].dump(), HasSubstr("power.1.1 gives its value"));
  ASSERT_GE(power["neighbours"].size(), 2u);
  const auto reduced =
      std::ranges::find_if(power["neighbours"], [](const json& n) { return n["producer"] == "reduce.1"; });
  ASSERT_NE(reduced, power["neighbours"].end());
  EXPECT_EQ((*reduced)["relation"], "producer");
  EXPECT_EQ((*reduced)["consumer"], "divide.1");
  EXPECT_EQ((*reduced)["refusal"]["rule"], "peer.decision");
  EXPECT_THAT((*reduced)["refusal"]["why"].get<std::string>(),
              AllOf(HasSubstr("input fusion"), HasSubstr("loop fusion"), HasSubstr("why is not known")));
  // An op that two of its kernels compute; one of the compiler's own names; one that a call computes.
  EXPECT_EQ(document({"explain", fig7, "broadcast.6"}, "explain")["placements"].size(), 2u);
  EXPECT_THAT(run_command({"explain", fig7, "power.1.1"}).out, HasSubstr("loop fusion loop_power_fusion"));
  const CommandResult max = run_command({"explain", mlp, "max.3"});
  EXPECT_THAT(max.out, HasSubstr("library call lib:cublas-lt-matmul.3")) << max.err;
  expect_refused({"explain", fig7, "power.11"}, {"power.1"});
}

TEST_F(PeerPlans, AreRunsOfTheStore) {
  const std::string db = path("runs.db");
  const CommandResult said = run_command({"run", "fig7", "--plan", fig7, "--check", "--db", db});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("check: ok"));
  EXPECT_THAT(said.err, HasSubstr("stored as attempt 1"));
  const std::string text = document({"experiment", "show", "adhoc", "--db", db}, "experiment-results").dump();
  EXPECT_THAT(text, AllOf(HasSubstr("xla jaxlib 0.10.2"), HasSubstr("\"fig7\""), HasSubstr("kernel_us"),
                          HasSubstr("simulated")));
}

TEST_F(PeerPlans, AreOnThePageBesidePlanners) {
  const std::string page = path("page.html");
  const json said = document({"view", "fig7", "--with", fig7, "--planners", "astitch", "-o", page}, "view");
  ASSERT_EQ(said["plans"].size(), 2u);
  EXPECT_EQ(said["plans"][0]["planner"], "xla jaxlib 0.10.2");
  EXPECT_GT(said["plans"][0]["predicted_us"], 0);
  EXPECT_EQ(said["plans"][1]["planner"], "astitch");
  EXPECT_EQ(said["device"], "a100-sxm-40");
  expect_refused({"view", "softmax", "--with", fig7, "-o", page}, {"it has 4 parameters, the model 1"});
}

}  // namespace TEST_FILE
}  // namespace stitchwork
