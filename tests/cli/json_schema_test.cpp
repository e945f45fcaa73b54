// Documents of models and plans under --json, of errors, and the schemas themselves.
#include <algorithm>
#include <functional>

#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "core/hlo/npy.h"
#include "tests/cli/json_documents.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::JsonDocuments;
using testing::JsonSchema;
using testing::run_command;

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

}  // namespace TEST_FILE
}  // namespace stitchwork
