// stitchwork library collect|show|merge, and --library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "experiments/performance_library.h"
#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JsonSchema;
using ::testing::Not;
using testing::run_command;

class LibraryCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) /
        ("library_command_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("XDG_DATA_HOME", folder_.c_str(), 1);
    std::ofstream(path("tanh.hlo"))
        << "HloModule tanh\nENTRY e {\n  p = f32[3] parameter(0)\n  ROOT t = f32[3] "
           "tanh(p)\n}\n";
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string library(const std::string& name, const std::string& method = "simulated",
                      const std::string& device = "v100-sxm2") const {
    LibraryWriter::open(path(name))
        .insert({{"tanh f32[3] row 0/3 t64", device, "NVRTC 13.0", 0.5, method, "0"}});
    return path(name);
  }
  nlohmann::json expect_document(std::vector<std::string> words, const std::string& schema) {
    words.emplace_back("--json");
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.err, "");
    const auto document = nlohmann::json::parse(result.out, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << result.out;
    EXPECT_THAT(JsonSchema::read("docs/schema/" + schema + ".schema.json").problems(document), IsEmpty());
    return document;
  }
  /// The command fails with exit code 1 and exactly one line on stderr, nothing on stdout.
  void expect_error(const std::vector<std::string>& words, const ::testing::Matcher<std::string>& message) {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, message);
  }
  fs::path folder_;
};

TEST_F(LibraryCommand, CollectsOnceAndPlansByWhatItCollected) {
  const std::vector<std::string> collect = {"library", "collect", path("tanh.hlo"), "--db",
                                            path("a.library")};
  const auto first = expect_document(collect, "library-collection");
  EXPECT_EQ(first["built"], 12);  // 1 and 3 blocks of six sizes
  EXPECT_EQ(first["keys"], 12);
  EXPECT_EQ(first["missing"], 0);
  EXPECT_EQ(first["method"], "simulated");
  const std::string file = read_file(path("a.library"));
  const auto second = expect_document(collect, "library-collection");
  EXPECT_EQ(second["built"], 0);
  EXPECT_EQ(second["rounds"], 1);
  EXPECT_EQ(second["sha256"], first["sha256"]);
  EXPECT_EQ(read_file(path("a.library")), file);

  const auto shown = expect_document({"library", "show", path("a.library")}, "library");
  ASSERT_EQ(shown["rows"].size(), 12u);
  double least = 1e9;
  for (const auto& row : shown["rows"]) least = std::min(least, row["us"].get<double>());
  const CommandResult explained = run_command(
      {"explain", path("tanh.hlo"), "t", "-p", "fusionstitching-2018", "--library", path("a.library")});
  EXPECT_THAT(explained.out, HasSubstr(fmt::format("{:.2f} us, the sum over its ops (simulated)", least)));
  const auto plan = expect_document(
      {"plan", path("tanh.hlo"), "-p", "fusionstitching-2018", "--library", path("a.library")}, "plan");
  EXPECT_EQ(plan["options"]["library"], first["sha256"]);
}

TEST_F(LibraryCommand, DecidesForThePlannersThatTakeOne) {
  const std::string file = library("a.library");
  const auto with =
      expect_document({"plan", path("tanh.hlo"), "-p", "fusionstitching-2018", "--library", file}, "plan");
  EXPECT_EQ(with["kernels"][0]["grid"], 3);
  EXPECT_EQ(with["kernels"][0]["block"], 64);
  expect_document({"compare", path("tanh.hlo"), "--planners", "xla,fusionstitching-2018", "--library", file},
                  "compare");
  expect_document({"run", path("tanh.hlo"), "-p", "fusionstitching-2018", "--library", file, "--check"},
                  "run");
}

TEST_F(LibraryCommand, ASavedPlanIsExplainedByTheLibraryItWasMadeBy) {
  const std::string file = library("a.library"), plan = path("plan.json");
  const std::vector<std::string> made = {path("tanh.hlo"), "-p", "fusionstitching-2018", "--library", file};
  std::vector<std::string> words = {"plan", "-o", plan};
  words.insert(words.begin() + 1, made.begin(), made.end());
  ASSERT_EQ(run_command(words).exit_code, 0);
  words = {"explain", "t"};
  words.insert(words.begin() + 1, made.begin(), made.end());
  const CommandResult as_planned = run_command(words);
  EXPECT_THAT(as_planned.out, HasSubstr("the sum over its ops (simulated)"));
  EXPECT_EQ(run_command({"explain", "--plan", plan, "t", "--library", file}).out, as_planned.out);
  EXPECT_THAT(run_command({"explain", "--plan", plan, "t"}).out, Not(HasSubstr("fs18.schedule")));

  // A plan that was changed by hand is not what planning gives: it has no decisions.
  std::string text = read_file(plan);
  const std::string block = "\"block\": 64";
  ASSERT_NE(text.find(block), std::string::npos);
  write_file(plan, text.replace(text.find(block), block.size(), "\"block\": 96"));
  const CommandResult changed = run_command({"explain", "--plan", plan, "t", "--library", file});
  EXPECT_EQ(changed.exit_code, 0) << changed.err;
  EXPECT_THAT(changed.out, Not(HasSubstr("fs18.schedule")));
}

TEST_F(LibraryCommand, ShowsAndMerges) {
  const std::string a = library("a.library"), b = library("b.library", "measured");
  expect_document({"library", "show", a}, "library");
  EXPECT_THAT(
      run_command({"library", "show", a}).out,
      AllOf(HasSubstr("tanh f32[3]"), HasSubstr("row 0/3 t64"), HasSubstr("1 keys of v100-sxm2, simulated"),
            HasSubstr("timed by programs of results 0;")));
  const auto merged =
      expect_document({"library", "merge", path("all.library"), a, b, "--mixed"}, "library-merge");
  EXPECT_EQ(merged["added"], 2);
  EXPECT_THAT(run_command({"library", "show", path("all.library")}).out, HasSubstr("measured and simulated"));
}

TEST_F(LibraryCommand, BadOnesAreOneLineAndNothingIsWritten) {
  const std::string v100 = library("v100.library"), p100 = library("p100.library", "simulated", "p100-sxm2"),
                    measured = library("measured.library", "measured");
  std::ofstream(path("cut.library"), std::ios::binary) << read_file(v100).substr(0, 5000);
  std::ofstream(path("text.library")) << "not a library";
  const std::string model = path("tanh.hlo");
  const auto planned = [&](const std::string& file) {
    return std::vector<std::string>{"plan", model, "-p", "fusionstitching-2018", "--library", file};
  };
  expect_error(planned(path("none.library")),
               HasSubstr("none.library: there is no such performance library"));
  expect_error(planned(path("cut.library")), HasSubstr("cut.library: is cut off or damaged"));
  expect_error(planned(path("text.library")), HasSubstr("text.library: is no performance library"));
  expect_error(planned(p100), HasSubstr("the performance library is of p100-sxm2, the plan for v100-sxm2"));
  expect_error({"plan", model, "-p", "astitch", "--library", v100}, HasSubstr("planner astitch takes no"));
  expect_error({"plan", model, "-p", "fusionstitching-2018", "--mixed"}, HasSubstr("--library"));
  expect_error({"compare", model, "--planners", "xla,astitch", "--library", v100},
               HasSubstr("none of these planners takes a performance library"));

  const auto collected = [&](const std::string& file, const std::string& planner = "fusionstitching-2018") {
    return std::vector<std::string>{"library", "collect", model, "-p", planner, "--db", file};
  };
  expect_error(collected(path("new.library"), "xla"), HasSubstr("planner xla takes no performance library"));
  expect_error(collected(path("new.library"), "nobody"), HasSubstr("no planner is called 'nobody'"));
  expect_error(collected(p100), HasSubstr("is a performance library of p100-sxm2, not of v100-sxm2"));
  expect_error(collected(measured),
               AllOf(HasSubstr("measured, these would be simulated"), HasSubstr("--mixed")));
  expect_error(collected(path("text.library")), HasSubstr("is no performance library"));
  expect_error(collected(path("no/where/a.library")), HasSubstr("its folder does not exist"));
  expect_error({"library", "collect", "nothing_of_this_name", "--db", path("new.library")},
               HasSubstr("nothing_of"));
  expect_error({"library", "merge", path("new.library"), v100, p100},
               HasSubstr("p100-sxm2, not of v100-sxm2"));
  expect_error({"library", "merge", path("new.library"), v100, measured}, HasSubstr("--mixed"));
  EXPECT_FALSE(fs::exists(path("new.library")));
  EXPECT_EQ(read_file(path("text.library")), "not a library");

  run_command({"library", "merge", path("mixed.library"), v100, measured, "--mixed"});
  expect_error(planned(path("mixed.library")),
               AllOf(HasSubstr("times of several methods"), HasSubstr("--mixed")));
  std::vector<std::string> taken = planned(path("mixed.library"));
  taken.emplace_back("--mixed");
  EXPECT_EQ(run_command(taken).exit_code, 0);

  run_command({"plan", model, "-p", "fusionstitching-2018", "-o", path("plan.json")});
  expect_error({"run", "--plan", path("plan.json"), "--library", v100},
               HasSubstr("the plan was made without a library"));
  run_command({"plan", model, "-p", "fusionstitching-2018", "--library", v100, "-o", path("plan.json")});
  expect_error({"explain", "--plan", path("plan.json"), "t", "--library", measured},
               AllOf(HasSubstr("by another library (sha256 "), HasSubstr("measured.library is ")));
}

TEST_F(LibraryCommand, HelpHasExamplesAndShellsCompleteIt) {
  for (const char* command : {"collect", "show", "merge"})
    EXPECT_THAT(run_command({"library", command, "--help"}).out,
                HasSubstr("Examples:\n  stitchwork library"));
  EXPECT_THAT(run_command("completion bash").out,
              HasSubstr("\"library\") words=\"--help\"; below=\"collect show merge\""));
  for (const char* command : {"plan", "run", "compare", "explain", "compile", "advise"})
    EXPECT_THAT(run_command(std::string(command) + " --help").out, HasSubstr("--library")) << command;
}

}  // namespace TEST_FILE
}  // namespace stitchwork
