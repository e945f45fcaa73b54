// Documents of what runs kernels, of experiments and of what is made of their results.
#include "core/base/file.h"
#include "figures/data/renderer.h"
#include "tests/cli/json_documents.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using testing::JsonDocuments;
using testing::JsonSchema;
using testing::run_command;

TEST_F(JsonDocuments, Compile) {
  const auto document = expect_document({"compile", "fig5", "-o", path("out")}, "compile");
  for (const auto& file : document["files"])
    EXPECT_TRUE(fs::exists(folder_ / "out" / file.get<std::string>())) << file;
  const auto launch = nlohmann::json::parse(read_file(path("out/launch.json")));
  EXPECT_THAT(JsonSchema::read("docs/schema/launch.schema.json").problems(launch), IsEmpty());
}

TEST_F(JsonDocuments, RunWithAndWithoutTheCheck) {
  const auto checked = expect_document({"run", "softmax_tiny", "--check", "--db", path("runs.db")}, "run");
  EXPECT_EQ(checked["check"]["ok"], true);
  const auto unchecked = expect_document({"run", "fig5", "--planner", "xla", "--db", path("runs.db")}, "run");
  EXPECT_TRUE(unchecked["check"].is_null());
}

TEST_F(JsonDocuments, RunsOfTiledProductsSayWhatMadeThem) {
  const auto run = expect_document(
      {"run", "scrnn_tiny", "-p", "astra", "--products", "tiled-32x32/2", "--check", "--db", path("runs.db")},
      "run");
  EXPECT_EQ(run["check"]["ok"], true);
  ASSERT_FALSE(run["library_calls"].empty());
  for (const auto& call : run["library_calls"]) EXPECT_EQ(call["by"], "tiled-32x32/2");
  for (const auto& step : run["steps"]) EXPECT_EQ(step["method"], "simulated");
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "scrnn_tiny", "-p", "astra", "--db", path("runs.db")});
    const testing::CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    return result.err;
  };
  EXPECT_THAT(refused({"--products", "tiled-16x16"}), ::testing::HasSubstr("known: tiled-128x128, "));
}

/// A column sum that XLA splits over blocks, which add up by atomics, and one that nothing splits.
constexpr char kSplitSum[] = R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  p = f32[65536,64] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[64] reduce(p, zero), dimensions={0}, to_apply=add
})";
constexpr char kRowSum[] = R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  p = f32[4096,64] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[4096] reduce(p, zero), dimensions={1}, to_apply=add
})";

TEST_F(JsonDocuments, KernelsSayWhatLimitsThem) {
  const std::string file = path("exp.hlo");
  const auto exponential = [&](int n) {
    write_file(file, fmt::format("HloModule m\nENTRY main {{\n  p = f32[{0}] parameter(0)\n"
                                 "  ROOT r = f32[{0}] exponential(p)\n}}\n",
                                 n));
  };
  const auto of_plan = [&] {
    return expect_document({"plan", file, "--planner", "xla"}, "plan")["kernels"][0]["time_parts"];
  };
  exponential(64);
  EXPECT_EQ(of_plan()["limited_by"], "launch");
  exponential(1 << 24);
  EXPECT_EQ(of_plan()["limited_by"], "DRAM bandwidth");
  exponential(1 << 16);
  const std::vector<std::pair<std::string, nlohmann::json>> told{
      {"modelled", of_plan()},
      {"modelled",
       expect_document({"explain", file, "r", "--planner", "xla"}, "explain")["placements"][0]["time_parts"]},
      {"simulated", expect_document({"run", file, "--planner", "xla", "--db", path("runs.db")},
                                    "run")["kernels"][0]["time_parts"]}};
  for (const auto& [method, parts] : told) {
    EXPECT_EQ(parts["method"], method);
    const nlohmann::json& shares = parts["speed_of_light"];
    EXPECT_GT(shares["dram"], 0.01) << parts;
    EXPECT_GT(shares["special"], 0) << "exponentials";
    EXPECT_FALSE(shares.contains("tensor"));
    for (const auto& [unit, share] : shares.items()) EXPECT_LE(share, 1) << unit;
    double launch = parts["launch_us"], largest = 0;
    for (const auto& [part, us] : parts.items())
      if (us.is_number()) largest = std::max(largest, us.get<double>());
    EXPECT_EQ(parts["limited_by"] == "launch", launch == largest) << parts;
    EXPECT_GT(largest, 0);
  }
  EXPECT_THAT(run_command({"explain", file, "r", "--planner", "xla"}).out,
              ::testing::AllOf(::testing::HasSubstr(" us (modelled), limited by "),
                               ::testing::HasSubstr("of each unit's peak (modelled): ")));
}

TEST_F(JsonDocuments, KernelsSayWhatTheirTimesLeaveOut) {
  write_file(path("split.hlo"), kSplitSum);
  write_file(path("rows.hlo"), kRowSum);
  const auto ids = [](const nlohmann::json& left_out) {
    std::vector<std::string> found;
    for (const auto& effect : left_out) found.push_back(effect["id"]);
    return found;
  };
  const auto contends = [&](const nlohmann::json& left_out) {
    const auto found = ids(left_out);
    return std::ranges::count(found, "contended-atomics") == 1;
  };
  const auto of_plan = [&](const char* file) {
    return expect_document({"plan", path(file), "--planner", "xla"}, "plan")["kernels"][0]["not_modelled"];
  };
  const auto of_run = [&](const char* file) {
    return expect_document({"run", path(file), "--planner", "xla", "--db", path("runs.db")},
                           "run")["kernels"][0]["not_modelled"];
  };
  const auto of_op = [&](const char* file) {
    return expect_document({"explain", path(file), "r", "--planner", "xla"},
                           "explain")["placements"][0]["not_modelled"];
  };
  for (const auto& contended : {of_plan("split.hlo"), of_run("split.hlo"), of_op("split.hlo")})
    EXPECT_TRUE(contends(contended)) << contended;
  for (const auto& apart : {of_plan("rows.hlo"), of_run("rows.hlo"), of_op("rows.hlo")})
    EXPECT_FALSE(contends(apart)) << apart;
  EXPECT_THAT(run_command({"explain", path("split.hlo"), "r", "--planner", "xla"}).out,
              ::testing::HasSubstr("not modelled: contended-atomics: "));
}

TEST_F(JsonDocuments, ProductsThatMayRoundAreTimedSo) {
  write_file(path("dot.hlo"),
             "HloModule m\nENTRY main {\n  a = f32[512,512] parameter(0)\n  b = f32[512,512] parameter(1)\n"
             "  ROOT d = f32[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"run", path("dot.hlo"), "--check", "--db", path("runs.db")};
    words.insert(words.end(), more.begin(), more.end());
    return expect_document(words, "run");
  };
  const auto exact = run({"--device", "a100"}), rounded = run({"--device", "a100", "--tf32"});
  EXPECT_FALSE(exact.contains("tf32"));
  EXPECT_EQ(rounded["tf32"], true);
  EXPECT_LT(rounded["steps"][0]["time_us"], exact["steps"][0]["time_us"]);
  EXPECT_EQ(rounded["steps"][0]["method"], "modelled");
  EXPECT_EQ(rounded["check"]["max_abs_error"], exact["check"]["max_abs_error"]) << "computed exactly";
  ASSERT_EQ(run_command({"plan", path("dot.hlo"), "--device", "a100", "-o", path("exact.json")}).exit_code,
            0);
  const auto saved =
      expect_document({"run", "--plan", path("exact.json"), "--tf32", "--db", path("runs.db")}, "run");
  EXPECT_EQ(saved["steps"][0]["time_us"], rounded["steps"][0]["time_us"]);
  const auto refused = expect_document(
      {"run", path("dot.hlo"), "--device", "v100", "--tf32", "--db", path("runs.db")}, "error", 1);
  EXPECT_EQ(
      refused["error"]["message"],
      "Tesla V100-SXM2-16GB has no tensor cores for TF32: its products of f32 matrices are computed in fp32");
}

TEST_F(JsonDocuments, Report) {
  run_command({"run", "fig5", "--db", path("runs.db")});
  expect_document({"report", path("runs.db"), "-o", path("report.html")}, "report");
  EXPECT_TRUE(fs::exists(path("report.html")));
}

TEST_F(JsonDocuments, View) {
  expect_document({"view", "fig5", "--planners", "xla", "-o", path("view.html")}, "view");
}

TEST_F(JsonDocuments, Experiments) {
  const std::string spec = path("e.json"), db = path("e.db");
  write_file(
      spec, R"({"schema":"stitchwork.experiment/1","name":"e","workloads":["fig7","softmax"],)"
            R"("variants":[{"planner":"xla"},{"name":"ours","planner":"astitch","set":{"mapping":"paper"}}],)"
            R"("backend":"model"})");
  EXPECT_THAT(
      JsonSchema::read("docs/schema/experiment.schema.json").problems(nlohmann::json::parse(read_file(spec))),
      IsEmpty());
  EXPECT_EQ(expect_document({"experiment", "run", spec, "--db", db, "--dry-run"}, "experiment-run")["to_run"]
                .size(),
            4u);
  EXPECT_EQ(expect_document({"experiment", "run", spec, "--db", db}, "experiment-run")["ok"], 4);
  EXPECT_EQ(expect_document({"experiment", "list", "--db", db}, "experiments")["experiments"][0]["ok"], 4);
  EXPECT_EQ(expect_document({"experiment", "show", "e", "--db", db}, "experiment-results")["trials"].size(),
            4u);
  const auto ablation =
      expect_document({"experiment", "ablate", "e", "--base", "xla", "--db", db}, "ablation");
  EXPECT_GT(ablation["geometric_means"][1], 1.0);
  const auto same = expect_document(
      {"experiment", "compare", "e", "e", "--db", db, "--fail-on", "regression"}, "experiment-comparison");
  EXPECT_EQ(same["worse"], 0);
  EXPECT_EQ(expect_document({"experiment", "merge", db, "--db", path("all.db")}, "merge")["attempts"], 4);
  expect_document({"experiment", "export", "e", "--db", db, "-o", path("e.csv")}, "export");
  EXPECT_NE(read_file(path("e.csv")).find("fig7,v100-sxm2,ours,0,ok,memory_kernels,1,1,modelled"),
            std::string::npos);
}

TEST_F(JsonDocuments, SpecificationsOfThePapersExperiments) {
  const JsonSchema schema = JsonSchema::read("docs/schema/experiment.schema.json");
  int found = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(std::string(STITCHWORK_SOURCE_DIR) + "/experiments")) {
    if (entry.path().extension() != ".json") continue;
    const auto document = nlohmann::json::parse(read_file(entry.path().string()));
    if (document.value("schema", "") != "stitchwork.experiment/1") continue;
    ++found;
    EXPECT_THAT(schema.problems(document), IsEmpty()) << entry.path();
    EXPECT_EQ(run_command({"experiment", "run", entry.path().string(), "--dry-run", "--db", path("none.db")})
                  .exit_code,
              0);
  }
  EXPECT_GE(found, 1);
}

TEST_F(JsonDocuments, LimitsImportAndSubmission) {
  write_file(
      path("e.json"),
      R"({"schema":"stitchwork.experiment/1","name":"e","workloads":["softmax_tiny"],"backend":"model",)"
      R"("variants":[{"planner":"xla"},{"planner":"astitch"}]})");
  ASSERT_EQ(run_command({"experiment", "run", path("e.json"), "--db", path("e.db")}).exit_code, 0);
  const auto limits = expect_document({"experiment", "limits", "e", "--db", path("e.db")}, "limits");
  EXPECT_EQ(limits["trials"][0]["parts"][0]["part"], "kernels limited by launch");
  const auto figure = expect_document({"figure", "e", "--db", path("e.db"), "-o", path("figures"), "--format",
                                       can_render() ? "svg,png" : "svg"},
                                      "figure");
  EXPECT_TRUE(fs::exists(path("figures/e_total_us.csv")));
  EXPECT_EQ(fs::exists(path("figures/e_total_us.png")), can_render());
  EXPECT_EQ(expect_document({"figure", "fig99", "--db", path("e.db")}, "error", 1)["error"]["hint"],
            "experiments there: e");
  write_file(path("ncu.csv"), "ID,Kernel Name,dram__sectors_read.sum\n0,k,7\n");
  const std::vector<std::string> import{"experiment",   "import",   path("ncu.csv"),
                                        "--name",       "profiled", "--workload",
                                        "softmax_tiny", "--db",     path("e.db")};
  EXPECT_EQ(expect_document(import, "import")["new"], true);
  EXPECT_EQ(expect_document(import, "import")["new"], false);
  EXPECT_EQ(expect_document({"experiment", "import", path("e.json"), "--name", "x", "--workload", "y", "--db",
                             path("e.db")},
                            "error", 1)["error"]["message"],
            "is JSON without traceEvents");
  const auto submission = expect_document({"experiment", "submit", path("e.json"), "--slurm", "--dry-run",
                                           "--shards", "64", "--folder", path("slurm"), "--db", path("e.db")},
                                          "submission");
  EXPECT_EQ(submission["shards"], 2) << "no more than there are trials";
  expect_document({"experiment", "submit", path("e.json")}, "error", 1);
}

TEST_F(JsonDocuments, ReproductionOfWhatNeedsNoTrials) {
  const auto document =
      expect_document({"reproduce", "astitch", "--only", "table6", "--db", path("r.db")}, "reproduction");
  ASSERT_EQ(document["tables"].size(), 1u);
  for (const auto& value : document["tables"][0]["values"]) EXPECT_NEAR(value["ratio"], 1, 0.05);
  EXPECT_EQ(run_command(std::string("reproduce astich")).exit_code, 1);
  EXPECT_EQ(run_command({"reproduce", "astitch", "--only", "table7"}).exit_code, 1);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
