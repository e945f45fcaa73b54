// Bad input of any kind: one line that says where, what and what to do; exit code 1; nothing half-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::Matcher;
using testing::run_command;

class Errors : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("errors_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// The command fails with exit code 1 and exactly one line on stderr, nothing on stdout.
  void expect_error(const std::vector<std::string>& words, const Matcher<std::string>& message) {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, message);
  }
  fs::path folder_;
};

constexpr char kGood[] =
    "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  b = f32[4] parameter(1)\n  ROOT c = f32[4] add(a, "
    "b)\n}\n";

TEST_F(Errors, TruncatedHloNamesFileLineAndColumn) {
  const std::string f = file("cut.hlo", std::string(kGood).substr(0, 80));
  expect_error({"plan", f}, ::testing::ContainsRegex("cut\\.hlo:[0-9]+:[0-9]+: .*; "));
}

TEST_F(Errors, RewriteNamesTheNearestRuleAndOpAndWhatARuleNeeds) {
  expect_error({"rewrite", "softmax_block_tiny", "--rules", "softmax-dots"},
               AllOf(HasSubstr("no rule is called 'softmax-dots'"), HasSubstr("did you mean softmax-dot?")));
  expect_error({"rewrite", "softmax_block_tiny", "--rules", "softmax-dot", "--at", "dot.32"},
               AllOf(HasSubstr("no op is called 'dot.32'"), HasSubstr("did you mean dot.31?")));
  expect_error(
      {"rewrite", "softmax_block_tiny", "--rules", "softmax-dot", "--at", "dot.8"},
      AllOf(HasSubstr("softmax-dot does not hold at dot.8"), HasSubstr("the sum is over what the dot")));
  expect_error({"rewrite", "softmax_block_tiny", "--at", "dot.31"}, HasSubstr("--at needs rules"));
}

TEST_F(Errors, DiffOfPlansOfDifferentModels) {
  run_command({"plan", "fig5", "-o", path("a.json")});
  run_command({"plan", "fig7", "-o", path("b.json")});
  expect_error({"diff", path("a.json"), path("b.json")}, AllOf(HasSubstr("fig5"), HasSubstr("fig7")));
}

TEST_F(Errors, UnknownOpIsNamedWithItsPlace) {
  const std::string f =
      file("op.hlo", "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT c = f32[4] adde(a, a)\n}\n");
  expect_error({"plan", f}, AllOf(HasSubstr("op.hlo:4:"), HasSubstr("adde"), HasSubstr("add")));
}

TEST_F(Errors, ShapeMismatchSaysBothShapes) {
  const std::string f = file(
      "shape.hlo", "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT c = f32[5] negate(a)\n}\n");
  expect_error({"plan", f}, AllOf(HasSubstr("shape.hlo:4:"), HasSubstr("f32[4]"), HasSubstr("f32[5]")));
}

TEST_F(Errors, MissingFileSuggestsADataset) {
  expect_error({"plan", "softmx"}, HasSubstr("did you mean softmax?"));
}

TEST_F(Errors, UnknownPlannerAndDeviceNameTheKnownOnes) {
  expect_error({"plan", "fig7", "--planner", "magic"}, AllOf(HasSubstr("magic"), HasSubstr("astitch")));
  expect_error({"plan", "fig7", "--device", "gtx9000"}, AllOf(HasSubstr("gtx9000"), HasSubstr("v100-sxm2")));
}

TEST_F(Errors, UnknownKnobNamesTheKnownOnes) {
  expect_error({"plan", "fig7", "--set", "no_such_knob=on"},
               AllOf(HasSubstr("no_such_knob"), HasSubstr("dominant_merging")));
  expect_error({"plan", "fig7", "--set", "dominant_merging=maybe"},
               AllOf(HasSubstr("maybe"), HasSubstr("off")));
}

TEST_F(Errors, UnknownOpInExplainSuggestsACloseName) {
  expect_error({"explain", "fig7", "power.2"}, AllOf(HasSubstr("power.2"), HasSubstr("power.1")));
}

/// A plan of fig7, edited.
std::string edited_plan(const std::string& planner,
                        const std::function<void(nlohmann::ordered_json&)>& edit) {
  const CommandResult plan = run_command({"plan", "fig7", "--planner", planner, "--json"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  nlohmann::ordered_json document = nlohmann::ordered_json::parse(plan.out);
  edit(document);
  return document.dump(1);
}

TEST_F(Errors, PlanWithACycleIsRefused) {
  const std::string f = file("cycle.json", edited_plan("unfused", [](nlohmann::ordered_json& plan) {
                               auto& steps = plan["steps"];
                               std::reverse(steps.begin(), steps.end());
                             }));
  expect_error({"run", "--plan", f, "--db", path("x.db")}, HasSubstr("cycle.json"));
  const CommandResult verify = run_command({"verify", f});
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_THAT(verify.err, HasSubstr("only later"));
}

TEST_F(Errors, PlanWithAMissingOpIsRefused) {
  const std::string f = file("missing.json", edited_plan("unfused", [](nlohmann::ordered_json& plan) {
                               std::string removed = plan["kernels"].back()["id"];
                               plan["kernels"].erase(plan["kernels"].size() - 1);
                               auto& steps = plan["steps"];
                               for (std::size_t i = 0; i < steps.size(); ++i)
                                 if (steps[i]["id"] == removed) steps.erase(i--);
                             }));
  const CommandResult verify = run_command({"verify", f});
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_THAT(verify.err, HasSubstr("missing.json"));
}

TEST_F(Errors, PlanWithMoreScratchThanItsSlotsIsRefused) {
  for (const char* planner : {"xla", "astitch"}) {  // without slots and with one
    const std::string f = file("scratch.json", edited_plan(planner, [](nlohmann::ordered_json& plan) {
                                 plan["kernels"][0]["scratch_bytes"] = 1000000000000000000;
                               }));
    const auto refused = AllOf(HasSubstr("scratch.json: "), HasSubstr("1000000000000000000 bytes of scratch"),
                               HasSubstr("[verify.slot]"));
    expect_error({"verify", f}, refused);
    expect_error({"run", "--plan", f, "--db", path("x.db")}, refused);
  }
}

TEST_F(Errors, PlanThatIsNotJsonSaysWhere) {
  expect_error({"verify", file("bad.json", "{\"schema\": \"stitchwork.plan/1\", ")}, HasSubstr("bad.json"));
}

TEST_F(Errors, PlanOfAnotherModelVersionIsRefused) {
  const std::string f = file("old.json", edited_plan("xla", [](nlohmann::ordered_json& plan) {
                               plan["model"]["sha256"] = std::string(64, '0');
                             }));
  expect_error({"compile", "--plan", f, "-o", path("out")}, HasSubstr("another version"));
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(Errors, UnwritableDatabaseIsFoundBeforeTheWork) {
  file("blocker", "not a folder");
  expect_error({"run", "fig5", "--db", path("blocker/runs.db")}, HasSubstr("blocker"));
}

TEST_F(Errors, FileThatIsNoStoreIsRefusedAndLeftAlone) {
  const std::string f = file("notes.db", "these are my notes, not a database");
  expect_error({"run", "fig5", "--db", f}, HasSubstr("notes.db"));
  EXPECT_EQ(read_file(f), "these are my notes, not a database");
}

TEST_F(Errors, PtxWithAnUnknownInstructionNamesItsLineAndColumn) {
  const std::string f = file("odd.ptx",
                             ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n  "
                             "frobnicate.u32 %r1, %r2;\n  ret;\n}\n");
  expect_error({"ptx", "run", f, "--kernel", "k", "--grid", "1", "--block", "32"},
               AllOf(HasSubstr("odd.ptx:6:"), HasSubstr("frobnicate")));
}

TEST_F(Errors, UnwritableOutputLeavesNothingBehind) {
  expect_error({"plan", "fig7", "-o", path("no/such/folder/plan.json")}, HasSubstr("plan.json"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Errors, AGpuThatIsNotThere) {
  ::setenv("STITCHWORK_CUDA_DRIVER", "libno-such-driver.so.1", 1);
  expect_error({"run", "softmax_tiny", "--backend", "cuda", "--db", path("runs.db")},
               AllOf(HasSubstr("no CUDA driver"), HasSubstr("--backend sim")));
  expect_error({"run", "softmax_tiny", "--backend", "cuda", "--device", "h200", "--db", path("runs.db")},
               HasSubstr("no CUDA driver"));
  ::unsetenv("STITCHWORK_CUDA_DRIVER");
  expect_error({"run", "softmax_tiny", "--backend", "cuda", "--device", "h200", "--sanitize", "race", "--db",
                path("runs.db")},
               HasSubstr("--sanitize needs the simulator"));
}

TEST_F(Errors, WeightsAreNamedByParametersAndPlannedWithAModel) {
  const std::string model = file("good.hlo", kGood);
  expect_error({"plan", model, "-p", "auto", "--weights", "z*"},
               AllOf(HasSubstr("no parameter is called 'z*'"), HasSubstr("`stitchwork inputs MODEL`")));
  expect_error({"plan", model, "-p", "auto", "--set", "weights=stable"},
               HasSubstr("no parameter is declared as a weight; `--weights"));
  expect_error({"plan", model, "-p", "xla", "--weights", "a"}, HasSubstr("no knob weights"));
  ASSERT_EQ(run_command({"plan", model, "-p", "auto", "--weights", "a", "-o", path("plan.json")}).exit_code,
            0);
  expect_error({"plan", "--plan", path("plan.json"), "--weights", "a"},
               HasSubstr("--weights with --plan: a saved plan says itself what is done once"));
}

TEST_F(Errors, JsonModePrintsAnErrorDocument) {
  const CommandResult result = run_command({"plan", "softmx", "--json"});
  EXPECT_EQ(result.exit_code, 1);
  const auto document = nlohmann::json::parse(result.out);
  for (const char* key : {"file", "line", "column", "message", "hint"})
    EXPECT_TRUE(document["error"].contains(key)) << key;
}

TEST_F(Errors, ACustomCallRunsAgainstItsReferenceOrIsRefusedByName) {
  const auto factors = [&](const std::string& target) {
    return file("lu.hlo",
                "HloModule lu\nENTRY e {\n  a = f32[16,16] parameter(0)\n"
                "  f = (f32[16,16], s32[16], s32[]) custom-call(a), custom_call_target=\"" +
                    target + "\"\n  ROOT r = f32[16,16] get-tuple-element(f), index=0\n}\n");
  };
  const CommandResult ran =
      run_command({"run", factors("lapack_sgetrf_ffi"), "--check", "--db", path("runs.db")});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("check: ok"));
  expect_error({"run", factors("LuDecomposition"), "--check", "--db", path("runs.db")},
               AllOf(HasSubstr("lu.hlo:4: f (custom-call of LuDecomposition) cannot be executed"),
                     HasSubstr("replace it")));
}

TEST_F(Errors, WrongUsageExitsWithTwo) {
  EXPECT_EQ(run_command("no-such-command").exit_code, 2);
  EXPECT_EQ(run_command({"plan", "fig7", "--no-such-option"}).exit_code, 2);
  EXPECT_EQ(run_command(std::vector<std::string>{}).exit_code, 2);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
