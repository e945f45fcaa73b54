#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "core/base/file.h"
#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"
#include "tests/support/profile_files.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::CommandResult;
using ::testing::HasSubstr;
using testing::JsonSchema;
using testing::run_command;

using Json = nlohmann::ordered_json;

/// The document in a page: gzip in base64.
Json document_of(const std::string& file) {
  const std::string page = read_file(file), mark = "<script id=\"data\" type=\"text/plain\">";
  const std::size_t begin = page.find(mark) + mark.size();
  const std::string text = page.substr(begin, page.find("</script>", begin) - begin);
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t held = 0;
  for (std::size_t i = 0; i < text.size() && text[i] != '='; ++i) {
    held = held << 6 | static_cast<std::uint32_t>(kDigits.find(text[i]));
    if (i % 4 != 0) bytes += static_cast<char>(held >> (6 - 2 * (i % 4)) & 255);
  }
  const std::string packed = file + ".gz";
  write_file(packed, bytes);
  Json document = Json::parse(read_decompressed(packed, ".gz"));
  std::filesystem::remove(packed);
  return document;
}

class View : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file); }
  std::string file = ::testing::TempDir() + "view_test.html";
};

TEST_F(View, DocumentHasOfEachPlanWhatPlanPrints) {
  const CommandResult said = run_command({"view", "fig7", "--planners", "xla,astitch", "-o", file});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  const Json page = document_of(file);
  EXPECT_THAT(JsonSchema::read("docs/schema/page.schema.json").problems(nlohmann::json::parse(page.dump())),
              ::testing::IsEmpty());
  ASSERT_EQ(page["plans"].size(), 2U);
  for (const Json& plan : page["plans"]) {
    const std::string planner = plan["plan"]["planner"];
    EXPECT_EQ(plan["plan"], Json::parse(run_command({"plan", "fig7", "-p", planner, "--json"}).out));
    EXPECT_GT(plan["parts"][0]["decisions"].size(), 0U);
    EXPECT_GT(plan["roofline"]["marks"].size(), 0U);
    EXPECT_GT(plan["memory"]["peak_bytes"], 0);
    EXPECT_EQ(plan["parts"][0]["kernels"].size(), plan["plan"]["kernels"].size());
    for (const Json& kernel : plan["parts"][0]["kernels"]) EXPECT_TRUE(kernel["source"].contains("text"));
  }
  ASSERT_EQ(page["diffs"].size(), 1U);
  EXPECT_GT(page["diffs"][0]["boundaries"].size(), 0U);
}

TEST_F(View, PlansTakeKnobsAndOverridesAsPlanDoes) {
  const std::string edits = ::testing::TempDir() + "view_test_edits.json";
  write_file(edits, R"({"schema":"stitchwork.override/1","edits":[{"do":"split","after":"power.1"}]})");
  const Json plain = Json::parse(run_command("plan fig7 -p astitch --json").out);
  for (const std::string& with : {std::string("--set data_reuse=off"), "--override " + edits}) {
    const CommandResult said = run_command("view fig7 --planners astitch -o " + file + " " + with);
    ASSERT_EQ(said.exit_code, 0) << said.err;
    const Json shown = document_of(file)["plans"][0]["plan"];
    EXPECT_EQ(shown, Json::parse(run_command("plan fig7 -p astitch --json " + with).out)) << with;
    EXPECT_NE(shown["kernels"], plain["kernels"]) << with;
  }
  std::filesystem::remove(edits);
  EXPECT_THAT(run_command("view fig7 --planners astitch --set no_such=on -o " + file).err,
              HasSubstr("no_such"));
}

TEST_F(View, CudaThatDiffersOnlyInNamesIsThereOnce) {
  ASSERT_EQ(run_command({"view", "bert_tiny", "--planners", "astitch", "-o", file}).exit_code, 0);
  const Json page = document_of(file);
  EXPECT_LT(page["sources"].size(), page["plans"][0]["plan"]["kernels"].size());
  // Marks replaced by names, a source is what compile writes.
  const Json kernel = page["plans"][0]["parts"][0]["kernels"][0]["source"];
  std::string text = page["sources"][kernel["text"].get<std::size_t>()];
  const std::string name = page["plans"][0]["plan"]["kernels"][0]["name"];
  const std::regex mark("\x01(k|\\d+[in])\x02");
  for (std::smatch m; std::regex_search(text, m, mark);) {
    std::string by = name;
    if (m[1] != "k") {
      by = kernel["names"][std::stoul(m[1])];
      if (m[1].str().back() == 'i') by = std::regex_replace(by, std::regex("[^A-Za-z0-9]"), "_");
    }
    text.replace(static_cast<std::size_t>(m.position()), static_cast<std::size_t>(m.length()), by);
  }
  EXPECT_EQ(text + "\n",
            run_command({"plan", "bert_tiny", "-p", "astitch", "--dump=cuda", "--kernel", "k0"}).out);
}

TEST_F(View, PageNeedsNoNetworkAndHasTheLicenceOfWhatDrawsIt) {
  ASSERT_EQ(run_command({"view", "softmax_tiny", "-o", file}).exit_code, 0);
  const std::string page = read_file(file);
  const std::regex fetched(R"((src|href)\s*=\s*"(?!#)[a-z]+:|@import|url\((?!#)|fetch\(|XMLHttpRequest\(\))");
  std::smatch found;
  const std::string ours =
      page.substr(0, page.find("<script id=\"data\"")) + page.substr(page.rfind("<script>"));
  EXPECT_FALSE(std::regex_search(ours, found, fetched)) << found.str();
  EXPECT_THAT(page, HasSubstr("Redistribution and use in source and binary forms"));
}

TEST_F(View, RunOfThePlanIsItsMetrics) {
  const std::string run = ::testing::TempDir() + "view_run.json";
  write_file(run, run_command({"run", "softmax_tiny", "-p", "xla", "--json"}).out);
  const CommandResult said = run_command({"view", "softmax_tiny", "--run", run, "-o", file});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  const Json plans = document_of(file)["plans"];
  EXPECT_EQ(plans[0]["metrics"].size(), 0U);
  ASSERT_GT(plans[1]["metrics"].size(), 1U);
  EXPECT_EQ(plans[1]["metrics"][0]["title"], "time");
  EXPECT_EQ(plans[1]["metrics"][1]["method"], "simulated");
  const CommandResult other = run_command({"view", "fig7", "--run", run, "-o", file});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err,
              HasSubstr("model: another model or version than fig7; run the model that is viewed"));
  const CommandResult none =
      run_command({"view", "softmax_tiny", "--planners", "tvm", "--run", run, "-o", file});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("none of the plans shown is this run's (xla on v100-sxm2, "));
  std::filesystem::remove(run);
}

TEST_F(View, ProfileIsImportedMetricsAndItsLaunches) {
  const std::string profile = ::testing::TempDir() + "view_profile.json";
  const Model model = load_model("softmax_tiny");
  const std::string root = model.graph.entry_computation().node(model.graph.entry_computation().root).name;
  write_file(profile, testing::jax_trace({{"k", root, 4}, {"unknown", "", 2}}, 3, "softmax").dump());
  const CommandResult said = run_command({"view", "softmax_tiny", "--profile", profile, "-o", file});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  const Json page = document_of(file);
  EXPECT_THAT(JsonSchema::read("docs/schema/page.schema.json").problems(nlohmann::json::parse(page.dump())),
              ::testing::IsEmpty());
  for (const Json& plan : page["plans"]) {
    ASSERT_GT(plan["metrics"].size(), 0U);
    EXPECT_EQ(plan["metrics"][0]["title"], "profiled time");
    EXPECT_EQ(plan["metrics"][0]["method"], "imported");
    EXPECT_EQ(plan["profile"]["launches"].size(), 2U);
    EXPECT_EQ(plan["profile"]["launches"][0][3], "instruction");
    EXPECT_THAT(plan["profile"]["findings"].get<std::string>(), HasSubstr("unknown: nothing of the model"));
  }
  std::filesystem::remove(profile);
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
  const Json rows = document_of(file)["plans"][0]["rows"];
  EXPECT_TRUE(std::ranges::any_of(rows, [](const Json& row) {
    return row["within"] == "body" && row["runs"] == 5;
  })) << rows;
  std::filesystem::remove(model);
}

/// Sums of rows and what is left without them, `ops` ops in all, each kernel a few.
std::string large_model(int ops) {
  std::string text =
      "HloModule large\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
      "ENTRY main {\n  p = f32[64,128] parameter(0)\n  zero = f32[] constant(0)\n";
  std::string last = "p";
  for (int i = 0; i < ops / 3; ++i) {
    const std::string n = std::to_string(i);
    text += "  r" + n + " = f32[64] reduce(" + last + ", zero), dimensions={1}, to_apply=sum\n  b" + n +
            " = f32[64,128] broadcast(r" + n + "), dimensions={0}\n  v" + n + " = f32[64,128] subtract(" +
            last + ", b" + n + ")\n";
    last = "v" + n;
  }
  return text + "  ROOT root = f32[64,128] negate(" + last + ")\n}\n";
}

TEST_F(View, LargeModelIsAnExcerptWithThePlansOwnNumbersAndReasons) {
  const std::string model = ::testing::TempDir() + "view_large.hlo";
  write_file(model, large_model(20000));
  const CommandResult said =
      run_command({"view", model, "--planners", "xla", "--around", "v5000", "--json", "-o", file});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.err, HasSubstr("--around OP shows others"));
  EXPECT_EQ(Json::parse(said.out)["excerpt"]["ops"], 4000);
  const Json page = document_of(file);
  EXPECT_THAT(JsonSchema::read("docs/schema/page.schema.json").problems(nlohmann::json::parse(page.dump())),
              ::testing::IsEmpty());
  const Json &shown = page["plans"][0], &part = shown["parts"][0];
  const Json whole = Json::parse(run_command({"plan", model, "-p", "xla", "--json"}).out);
  EXPECT_EQ(shown["plan"]["counts"], whole["counts"]);
  EXPECT_EQ(shown["plan"]["predicted_us"], whole["predicted_us"]);
  EXPECT_EQ(shown["excerpt"]["of_steps"], whole["steps"].size());
  ASSERT_GT(shown["plan"]["kernels"].size(), 0U);
  EXPECT_LT(shown["plan"]["kernels"].size(), whole["kernels"].size());
  std::map<std::string, Json> kernels;
  for (const Json& kernel : whole["kernels"]) kernels[kernel["id"]] = kernel;
  for (const Json& kernel : shown["plan"]["kernels"]) EXPECT_EQ(kernel, kernels.at(kernel["id"]));
  const Json& names = part["ops"]["name"];
  EXPECT_LT(names.size(), 9000U);
  const auto at = std::ranges::find(names, Json("v5000"));
  ASSERT_NE(at, names.end());
  // Why the kernel in the middle ends: as explain says of its op.
  const Json told = Json::parse(run_command({"explain", model, "v5000", "-p", "xla", "--json"}).out);
  std::set<std::string> reasons;
  for (const Json& b : part["boundaries"])
    reasons.insert(b[4][4].get<std::string>() + b[4][1].get<std::string>() + b[4][5].get<std::string>());
  ASSERT_GT(told["neighbours"].size(), 0U);
  for (const Json& n : told["neighbours"])
    EXPECT_TRUE(reasons.contains(n["refusal"]["rule"].get<std::string>() +
                                 n["refusal"]["subject"].get<std::string>() +
                                 n["refusal"]["why"].get<std::string>()))
        << n;
  const CommandResult unknown =
      run_command({"view", model, "--planners", "xla", "--around", "v500x", "-o", file});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("no op is called 'v500x'"));
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

}  // namespace TEST_FILE
}  // namespace stitchwork
