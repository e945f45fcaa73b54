// Every document a command prints under --json is what its schema in docs/schema/ promises.
#include "tests/support/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/hlo/hlo_text.h"
#include "core/hlo/npy.h"
#include "figures/data/renderer.h"
#include "tests/cli/run_command.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using testing::JsonSchema;
using testing::run_command;

class JsonDocuments : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("json_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("XDG_DATA_HOME", folder_.c_str(), 1);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Runs with --json added; the document, held to its schema.
  nlohmann::json expect_document(std::vector<std::string> words, const std::string& schema,
                                 int exit_code = 0) {
    words.emplace_back("--json");
    const testing::CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.out << result.err;
    const auto document = nlohmann::json::parse(result.out, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << result.out;
    EXPECT_THAT(JsonSchema::read("docs/schema/" + schema + ".schema.json").problems(document), IsEmpty());
    return document;
  }
  fs::path folder_;
};

TEST_F(JsonDocuments, Info) {
  expect_document({"info", "fig7"}, "info");
  const auto document = expect_document({"info", "bert_layer"}, "info");
  EXPECT_GT(document["library_ops"], 0);
}

TEST_F(JsonDocuments, InputsAreThoseOfRun) {
  const auto document =
      expect_document({"inputs", "layer_norm_tiny", "--seed", "7", "-o", path("in")}, "inputs");
  ASSERT_EQ(document["parameters"].size(), 3u);
  EXPECT_EQ(document["parameters"][1]["name"], "scale");
  const Model model = load_model("layer_norm_tiny");
  const auto inputs = generate_inputs(model.graph, 7, model.inputs);
  for (const auto& parameter : document["parameters"])
    EXPECT_EQ(read_npy(path("in/" + parameter["file"].get<std::string>())),
              inputs[parameter["number"].get<std::size_t>()]);
}

TEST_F(JsonDocuments, InputsThatAreTuplesAreRefusedByName) {
  write_file(path("pair.hlo"),
             "HloModule pair\nENTRY main {\n  p = (f32[2], f32[3]) parameter(0)\n"
             "  ROOT x = f32[2] get-tuple-element(p), index=0\n}\n");
  const auto document = expect_document({"inputs", path("pair.hlo"), "-o", path("in")}, "error", 1);
  EXPECT_EQ(document["error"]["message"], "parameter p is a tuple, (f32[2], f32[3])");
}

TEST_F(JsonDocuments, Lists) {
  EXPECT_GE(expect_document({"datasets"}, "datasets")["datasets"].size(), 10u);
  EXPECT_EQ(expect_document({"datasets", "fig7", "dien"}, "datasets")["datasets"].size(), 2u);
  EXPECT_GE(expect_document({"devices"}, "devices")["devices"].size(), 5u);
  EXPECT_GE(expect_document({"planners"}, "planners")["planners"].size(), 3u);
}

TEST_F(JsonDocuments, RulesAndRewrite) {
  const auto rules = expect_document({"rules"}, "rules");
  EXPECT_GE(rules["rules"].size(), 30u);
  const auto tidied = expect_document({"rewrite", "softmax_block_tiny"}, "rewrite");
  EXPECT_TRUE(tidied["check"].is_null());
  const auto document = expect_document(
      {"rewrite", "softmax_block_tiny", "--rules", "softmax-dot", "--check", "-o", path("out.hlo")},
      "rewrite");
  EXPECT_EQ(document["check"]["ok"], true);
  EXPECT_EQ(document["steps"].size(), 4u);
  EXPECT_EQ(document["graph_sha256"], sha256_hex(read_file(path("out.hlo"))));
  EXPECT_EQ(load_model(path("out.hlo")).graph.entry_computation().size(), document["ops"]["after"]);
  expect_document({"rewrite", "softmax_block_tiny", "--rules", "softmax-dots"}, "error", 1);
}

TEST_F(JsonDocuments, PlanOfEveryPlanner) {
  for (const char* model : {"fig7", "bert_tiny", "row_64x30000"})
    for (const Planner& planner : planners_for(load_model(model).graph))
      expect_document({"plan", model, "--planner", std::string(planner.name)}, "plan");
}

TEST_F(JsonDocuments, SavedPlanIsTheDocumentPrinted) {
  const auto document = expect_document({"plan", "fig7", "-o", path("plan.json")}, "plan");
  EXPECT_EQ(document, nlohmann::json::parse(read_file(path("plan.json"))));
}

TEST_F(JsonDocuments, Verify) {
  auto plan = expect_document({"plan", "fig7", "-o", path("plan.json")}, "plan");
  EXPECT_EQ(expect_document({"verify", path("plan.json")}, "verify")["ok"], true);
  plan["kernels"][0]["shared_bytes"] = 1 << 30;
  write_file(path("bad.json"), plan.dump());
  const auto problems = expect_document({"verify", path("bad.json")}, "verify", 1);
  EXPECT_EQ(problems["ok"], false);
  EXPECT_GE(problems["problems"].size(), 1u);
}

TEST_F(JsonDocuments, NumericsOfARewrittenGraphAndOfOneThatIsNot) {
  expect_document({"plan", "softmax_block_tiny", "-p", "korch", "-o", path("korch.json")}, "plan");
  const auto verified = expect_document({"verify", path("korch.json"), "--numerics"}, "verify");
  EXPECT_EQ(verified["ok"], true);
  const nlohmann::json& numerics = verified["numerics"];
  EXPECT_EQ(numerics["ok"], true);
  EXPECT_GT(numerics["ops"], 5);
  // The sum by a product rounds otherwise; what lies before it is the same to the bit.
  ASSERT_FALSE(numerics["differ"].empty());
  EXPECT_LT(numerics["differ"].size(), numerics["ops"]);
  for (const auto& op : numerics["differ"]) EXPECT_LT(op["max_rel_error"], 1e-4) << op;
  for (std::size_t i = 1; i < numerics["differ"].size(); ++i)
    EXPECT_GE(numerics["differ"][i - 1]["max_rel_error"], numerics["differ"][i]["max_rel_error"]);
  const testing::CommandResult text =
      run_command({"verify", path("korch.json"), "--numerics", "--seed", "3"});
  EXPECT_THAT(text.out, ::testing::HasSubstr("have a value in both graphs"));
  expect_document({"plan", "softmax_block_tiny", "-o", path("plain.json")}, "plan");
  const auto plain = expect_document({"verify", path("plain.json"), "--numerics"}, "verify");
  EXPECT_TRUE(plain["numerics"].is_null());
}

TEST_F(JsonDocuments, WhatKorchChoosesFromIsPrinted) {
  const auto document = expect_document(
      {"plan", "softmax_block_tiny", "-p", "korch", "--dump=primitives,candidates,program"}, "dump");
  ASSERT_EQ(document["dumps"].size(), 3u);
  EXPECT_THAT(document["dumps"][0]["text"].get<std::string>(), ::testing::HasSubstr("execution states"));
  EXPECT_THAT(document["dumps"][1]["text"].get<std::string>(), ::testing::HasSubstr("us (modelled)"));
  EXPECT_THAT(document["dumps"][2]["text"].get<std::string>(), ::testing::HasSubstr("Binaries"));
}

TEST_F(JsonDocuments, PlansCompareAndRunWithOverrides) {
  write_file(path("o.json"),
             R"({"schema":"stitchwork.override/1","edits":[{"do":"split","after":"power.1"}]})");
  const auto plan = expect_document({"plan", "fig7", "--override", path("o.json")}, "plan");
  EXPECT_EQ(plan["overrides"][0]["after"], "power.1");
  EXPECT_EQ(plan["counts"]["memory_kernels"], 2);
  const auto rows = expect_document({"compare", "fig7", "--override", path("o.json")}, "compare")["rows"];
  EXPECT_EQ(rows.size(), planners_for(load_model("fig7").graph).size());
  const auto run =
      expect_document({"run", "fig7", "--override", path("o.json"), "--db", path("runs.db")}, "run");
  EXPECT_EQ(run["overrides"], plan["overrides"]);
}

TEST_F(JsonDocuments, Advise) {
  EXPECT_TRUE(expect_document({"advise", "fig7"}, "advise")["advice"].empty());
  const auto document = expect_document({"advise", "bert_layer", "--count", "3"}, "advise");
  EXPECT_LE(document["advice"].size(), 3u);
  EXPECT_GE(document["advice"].size(), 1u);
}

TEST_F(JsonDocuments, ExplainOfAnOpInAKernelAndOfOneOutside) {
  const auto inside = expect_document({"explain", "fig7", "power.1"}, "explain");
  EXPECT_GE(inside["placements"].size(), 1u);
  EXPECT_GE(inside["decisions"].size(), 1u);
  const auto info = expect_document({"info", "fig7"}, "info");
  const auto outside = expect_document({"explain", "fig7", info["parameters"][0]["name"]}, "explain");
  EXPECT_NE(outside["step"], "");
}

TEST_F(JsonDocuments, DiffAndItsExitCodes) {
  run_command({"plan", "fig7", "--planner", "xla", "-o", path("a.json")});
  run_command({"plan", "fig7", "-o", path("b.json")});
  const auto document = expect_document({"diff", path("a.json"), path("b.json")}, "diff");
  EXPECT_EQ(document["a"]["memory_kernels"], 4);
  EXPECT_GE(document["boundaries"].size(), 1u);
  EXPECT_EQ(expect_document({"diff", path("b.json"), path("a.json"), "--fail-on", "more-kernels"}, "diff",
                            kExitDifference)["failed"][0],
            "more-kernels");
  EXPECT_EQ(run_command({"diff", path("a.json"), path("b.json"), "--fail-on", "more-kernels"}).exit_code, 0);
}

TEST_F(JsonDocuments, DumpsAndCompletion) {
  const auto dump = expect_document({"plan", "fig7", "--dump=plan,cuda", "--kernel", "k0"}, "dump");
  ASSERT_EQ(dump["dumps"].size(), 2u);
  EXPECT_EQ(dump["dumps"][1]["kind"], "cuda");
  EXPECT_THAT(dump["dumps"][1]["text"].get<std::string>(), ::testing::HasSubstr("__global__"));
  EXPECT_NE(expect_document({"completion", "bash"}, "completion")["text"], "");
  EXPECT_GT(expect_document({"completion", "--ops", "fig7"}, "completion")["ops"].size(), 5u);
}

TEST_F(JsonDocuments, ManAndVersion) {
  EXPECT_EQ(expect_document({"man", "plan"}, "man")["file"], "stitchwork-plan.1");
  EXPECT_GT(expect_document({"man", "-o", path("man1")}, "man")["files"].size(), 30u);
  const auto version = expect_document({"--version"}, "version");
  EXPECT_THAT(run_command("--version").out,
              ::testing::StartsWith(fmt::format("stitchwork {} ({}", version["version"].get<std::string>(),
                                                version["commit"].get<std::string>())));
}

TEST(Schemas, HaveTheIdOfTheirFileAndReferencesThatResolve) {
  const std::string folder = std::string(STITCHWORK_SOURCE_DIR) + "/docs/schema/";
  const std::function<void(const nlohmann::json&, const std::string&)> check = [&](const nlohmann::json& part,
                                                                                   const std::string& file) {
    for (const auto& [key, value] : part.items()) {
      if (key == "$ref" && value.is_string()) {
        const std::string reference = value, other = reference.substr(0, reference.find('#'));
        const auto document = nlohmann::json::parse(read_file(folder + (other.empty() ? file : other)));
        EXPECT_TRUE(
            document.contains(nlohmann::json::json_pointer(reference.substr(reference.find('#') + 1))))
            << file << ": " << reference;
      } else if (value.is_structured()) {
        check(value, file);
      }
    }
  };
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    const auto document = nlohmann::json::parse(read_file(entry.path().string()));
    EXPECT_EQ(document.at("$id"), "https://stitchwork.dev/schema/" + file);
    check(document, file);
  }
}

TEST_F(JsonDocuments, CompareOfDevicesAndLoops) {
  const auto document =
      expect_document({"compare", "fig7", "--devices", "v100,t4", "--planners", "xla,astitch"}, "compare");
  ASSERT_EQ(document["rows"].size(), 4u);
  EXPECT_EQ(document["rows"][2]["device"], "t4");
  EXPECT_TRUE(document["loops"].empty());
}

TEST_F(JsonDocuments, Compare) {
  const auto document = expect_document({"compare", "bert_tiny"}, "compare");
  EXPECT_EQ(document["rows"].size(), planners_for(load_model("bert_tiny").graph).size());
}

TEST_F(JsonDocuments, Quality) {
  const auto document = expect_document({"quality", "remote_trap", "bert_tiny"}, "quality");
  ASSERT_EQ(document["rows"].size(), 2u);
  EXPECT_EQ(document["rows"][0]["bound"]["kernels"], 2);
}

TEST_F(JsonDocuments, MemoryOfPlans) {
  // The tiny decoder has loops, whose bodies' memory is told as well.
  const auto document = expect_document({"plan", "llama_decode_tiny", "--dump", "memory"}, "dump");
  const nlohmann::json& memory = document["dumps"][0]["memory"];
  ASSERT_GE(memory.size(), 1u);
  std::int64_t most = 0;
  for (const auto& step : memory[0]["steps"])
    most = std::max<std::int64_t>(
        most, step["buffer_bytes"].get<std::int64_t>() + step["beside_bytes"].get<std::int64_t>());
  EXPECT_EQ(memory[0]["peak_bytes"], most);
  EXPECT_THAT(document["dumps"][0]["text"].get<std::string>(), ::testing::HasSubstr("<- peak"));
}

TEST_F(JsonDocuments, SpacesOfPlans) {
  const auto document =
      expect_document({"plan", "scrnn_tiny", "--planner", "xla", "--dump", "space"}, "dump");
  const nlohmann::json& space = document["dumps"][0]["space"];
  ASSERT_EQ(space.size(), 1u);
  EXPECT_EQ(space[0]["products"].size(), space[0]["dots"]);
  EXPECT_EQ(space[0]["groups"].size(), 15u);
  EXPECT_GE(space[0]["strategies"].size(), 2u);
  std::size_t steps = 0;
  for (const auto& part : space[0]["super_epochs"])
    for (const auto& epoch : part["epochs"])
      for (const auto& of : epoch["classes"]) steps += of["steps"].size();
  EXPECT_GT(steps, 47u);
  EXPECT_THAT(document["dumps"][0]["text"].get<std::string>(),
              ::testing::HasSubstr("15 fusion groups, calls 47 -> 16 where all are whole"));
}

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

TEST_F(JsonDocuments, Occupancy) {
  const auto document = expect_document({"occupancy", "--device", "v100", "--block", "1024"}, "occupancy");
  EXPECT_EQ(document["blocks_per_sm"], 2);
}

/// out[i] = i for i < n.
constexpr char kPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry iota(.param .u64 out, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<2>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvt.rn.f32.u32 %f1, %r5;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f1;
DONE:
  ret;
}
)";

TEST_F(JsonDocuments, LinesOfPtxAddUpToItsCounters) {
  const std::string file = path("k.ptx");
  // The last of four warps leaves before the store.
  write_file(file, kPtx);
  const std::vector<std::string> words = {"ptx",     "run",    file,    "--grid",           "4",
                                          "--block", "32",     "--arg", "buf:f32:100:zero", "--arg",
                                          "u32:96",  "--lines"};
  const auto document = expect_document(words, "ptx-run");
  std::int64_t warps = 0, threads = 0, slots = 0, accesses = 0;
  for (const auto& line : document["lines"]) {
    warps += line["inst_executed"].get<std::int64_t>();
    threads += line["thread_inst_executed"].get<std::int64_t>();
    slots += line["issue_slots"].get<std::int64_t>();
    accesses += line["inst_ldst"].get<std::int64_t>();
  }
  const auto& counters = document["counters"];
  EXPECT_EQ(warps, counters["inst_executed"]);
  EXPECT_EQ(threads, counters["thread_inst_executed"]);
  EXPECT_EQ(slots, counters["issue_slots"]);
  EXPECT_EQ(accesses, counters["inst_ldst"]);
  // ld.param is on line 10 of the text, run by all; the store by three warps of four.
  EXPECT_EQ(document["lines"][0]["line"], 10);
  EXPECT_EQ(document["lines"][0]["inst_executed"], 4);
  const auto store =
      std::ranges::find_if(document["lines"], [](const auto& l) { return l["inst_ldst"] > 0; });
  ASSERT_NE(store, document["lines"].end());
  EXPECT_EQ((*store)["inst_executed"], 3);
  EXPECT_EQ((*store)["gst_transactions"], counters["gst_transactions"]);
  EXPECT_EQ((*store)["gst_transactions"], 12);  // 96 floats
  const testing::CommandResult said = run_command(words);
  EXPECT_THAT(said.out, ::testing::HasSubstr("ld.param.u64 %rd1, [out];"));
  EXPECT_FALSE(expect_document({"ptx", "run", file, "--grid", "4", "--block", "32", "--arg",
                                "buf:f32:100:zero", "--arg", "u32:96"},
                               "ptx-run")
                   .contains("lines"));
}

TEST_F(JsonDocuments, LinesHaveTheirSectorsAndBankConflicts) {
  // Words of shared memory 128 bytes apart lie in one bank; every second word of global memory is loaded.
  const std::string file = path("s.ptx");
  write_file(file, R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b8 tile[4096];
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 8;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r2, [%rd4];
  shl.b32 %r3, %r1, 7;
  mov.u32 %r4, tile;
  add.s32 %r5, %r4, %r3;
  st.shared.u32 [%r5], %r2;
  ld.shared.u32 %r6, [%r5];
  mul.wide.u32 %rd5, %r1, 4;
  add.s64 %rd6, %rd2, %rd5;
  atom.global.add.u32 %r7, [%rd6], %r6;
  ret;
}
)");
  const auto document = expect_document({"ptx", "run", file, "--grid", "2", "--block", "32", "--arg",
                                         "buf:u32:64:seed=1", "--arg", "buf:u32:32:zero", "--lines"},
                                        "ptx-run");
  const auto line = [&](int number) {
    for (const auto& l : document["lines"])
      if (l["line"] == number) return l;
    return nlohmann::json();
  };
  EXPECT_EQ(line(14)["gld_transactions"], 2 * 8);
  EXPECT_EQ(line(18)["shared_bank_conflicts"], 2 * 31);
  EXPECT_EQ(line(19)["shared_wavefronts"], 2 * 32);
  EXPECT_EQ(line(22)["l2_atomic_sectors"], 2 * 4);
  for (const char* counter : {"gld_transactions", "gst_transactions", "l2_atomic_sectors",
                              "shared_wavefronts", "shared_bank_conflicts"}) {
    std::int64_t sum = 0;
    for (const auto& l : document["lines"]) sum += l[counter].get<std::int64_t>();
    EXPECT_EQ(sum, document["counters"][counter]) << counter;
  }
}

TEST_F(JsonDocuments, PtxRunCleanAndWithAFinding) {
  const std::string file = path("iota.ptx");
  write_file(file, kPtx);
  const auto info = expect_document({"ptx", "info", file}, "ptx-info");
  EXPECT_EQ(info["kernels"][0]["name"], "iota");
  EXPECT_EQ(info["kernels"][0]["parameters"].size(), 2u);
  const std::vector<std::string> launch = {"ptx", "run", file, "--grid", "4", "--block", "32", "--arg"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = launch;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto clean = expect_document(
      with({"buf:f32:100:zero", "--arg", "u32:100", "--out", "0:" + path("out.npy")}), "ptx-run");
  EXPECT_TRUE(clean["findings"].empty());
  EXPECT_EQ(clean["counters"]["gst_bytes"], 400);
  EXPECT_EQ(read_npy(path("out.npy")).data<float>()[99], 99);
  EXPECT_FALSE(clean["sanitizers"].contains("race"));
  const auto sanitized = expect_document(
      with({"buf:f32:100:zero", "--arg", "u32:100", "--sanitize", "mem,race,sync,init"}), "ptx-run");
  EXPECT_TRUE(sanitized["findings"].empty());
  EXPECT_EQ(sanitized["sanitizers"]["race"]["accesses_checked"], 100);
  EXPECT_EQ(sanitized["sanitizers"]["init"]["accesses_checked"], 0);
  EXPECT_EQ(sanitized["counters"], clean["counters"]);
  const std::string other = path("other.json"), broken = path("broken.json");
  write_file(other, clean.dump());
  const auto streams =
      expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--beside", other, "--beside", other}),
                      "ptx-run")["streams"];
  ASSERT_EQ(streams.size(), 3u);
  EXPECT_DOUBLE_EQ(streams[2]["end_us"], streams[0]["end_us"]);
  EXPECT_GE(streams[0]["end_us"], streams[0]["alone_us"]);
  for (const char* text : {"{", "{}", "[]", R"({"schema": "stitchwork.ptx-run/1"})", ""}) {
    write_file(broken, text);
    expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--beside", broken}), "error", 1);
  }
  expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--device", "t4", "--beside", other}),
                  "error", 1);
  expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--sanitize", "races"}), "error", 1);
  const auto clusters = expect_document(
      with({"buf:f32:100:zero", "--arg", "u32:100", "--cluster", "2,1,1", "--device", "h100"}), "ptx-run");
  EXPECT_EQ(clusters["cluster"], nlohmann::json({2, 1, 1}));
  EXPECT_EQ(clean["cluster"], nlohmann::json({1, 1, 1}));
  expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--cluster", "2"}), "error", 1);  // v100
  expect_document(with({"buf:f32:100:zero", "--arg", "u32:100", "--cluster", "3", "--device", "h100"}),
                  "error", 1);
  const auto overrun = expect_document(with({"buf:f32:99:zero", "--arg", "u32:100"}), "ptx-run", 1);
  EXPECT_EQ(overrun["findings"][0]["kind"], "out-of-bounds");
  expect_document(with({"buf:f32:99:zero", "--arg", "u32:100", "--out", "7:x.npy"}), "error", 1);
}

TEST_F(JsonDocuments, PtxIsa) {
  EXPECT_GT(expect_document({"ptx", "isa"}, "ptx-isa")["instructions"].size(), 50u);
}

TEST_F(JsonDocuments, ErrorsOfAllKinds) {
  expect_document({"plan", "softmx"}, "error", 1);
  expect_document({"explain", "fig7", "no.such.op"}, "error", 1);
  expect_document({"report", path("none.db"), "-o", path("x.html")}, "error", 1);
  write_file(path("bad.hlo"),
             "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT c = f32[4] adde(a, a)\n}\n");
  const auto document = expect_document({"plan", path("bad.hlo")}, "error", 1);
  EXPECT_EQ(document["error"]["line"], 4);
}

TEST_F(JsonDocuments, EveryFieldIsHeldToTheSchema) {
  auto document = expect_document({"run", "fig5", "--check", "--db", path("runs.db")}, "run");
  const JsonSchema schema = JsonSchema::read("docs/schema/run.schema.json");
  for (const char* pointer : {"/model/sha256", "/steps/0/time_us", "/kernels/0/method",
                              "/kernels/0/groups/0/mapping/kind", "/check/ok", "/counts/memory_kernels"}) {
    auto edited = document;
    edited[nlohmann::json::json_pointer(pointer)] = nlohmann::json::array();
    EXPECT_FALSE(schema.problems(edited).empty()) << pointer;
  }
  document["surprise"] = 1;
  EXPECT_FALSE(schema.problems(document).empty());
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
