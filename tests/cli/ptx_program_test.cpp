// stitchwork ptx run SCRIPT.json, and compilers' dumps: documents, exit codes, one line for what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/file.h"
#include "core/hlo/npy.h"
#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JsonSchema;
using testing::run_command;

const fs::path kDumps = fs::path(STITCHWORK_SOURCE_DIR) / "tests/data/dumps";

class Programs : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("programs_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    ::setenv("XDG_DATA_HOME", folder_.c_str(), 1);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static json held_to(const json& document, const std::string& schema) {
    EXPECT_THAT(JsonSchema::read("docs/schema/" + schema + ".schema.json").problems(document), IsEmpty());
    return document;
  }
  static json document(std::vector<std::string> words, const std::string& schema, int exit_code = 0) {
    words.emplace_back("--json");
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.out << result.err;
    return held_to(json::parse(result.out, nullptr, false), schema);
  }

  static void expect_refused(const std::vector<std::string>& words, const std::vector<std::string>& parts) {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
  }

  fs::path folder_;
};

/// sum = a + b, twice: c = a + b, then c = c + b.
json additions() {
  const auto add = [](const char* a, const char* b, const char* c) {
    return json{{"kernel", "vecadd"}, {"grid", 4}, {"block", 256}, {"arguments", {a, b, c, "i32:1000"}}};
  };
  const json random = {{"type", "f32"}, {"shape", {1000}}, {"fill", {{"seed", 1}}}};
  return {{"schema", "stitchwork.ptx-program/1"},
          {"title", "two sums"},
          {"device", "a100"},
          {"sanitize", "race,init"},
          {"modules", {"vecadd.ptx"}},
          {"buffers",
           {{"a", random}, {"b", random}, {"c", {{"type", "f32"}, {"shape", {1000}}, {"save", "c.npy"}}}}},
          {"steps", {add("a", "b", "c"), add("c", "b", "c")}}};
}

TEST_F(Programs, RunWithDocumentTableAndFiles) {
  fs::copy(fs::path(STITCHWORK_SOURCE_DIR) / "tests/simulator/ptx/vecadd.ptx", path("vecadd.ptx"));
  json script = held_to(additions(), "ptx-program");
  const auto write = [&] { std::ofstream(path("p.json")) << script.dump(1); };
  write();
  const json ran = document({"ptx", "run", path("p.json")}, "ptx-program-run");
  EXPECT_EQ(ran["device"], "a100-sxm-80");
  ASSERT_EQ(ran["steps"].size(), 2u);
  EXPECT_EQ(ran["steps"][0]["counters"]["gst_bytes"], 4000);
  EXPECT_GT(ran["total_us"],
            ran["steps"][0]["time_us"].get<double>() + ran["steps"][1]["time_us"].get<double>());
  EXPECT_TRUE(ran["sanitizers"].contains("race"));
  const Literal c = read_npy(path("c.npy"));
  script["buffers"]["c"]["expect"] = {{"npy", "c.npy"}};
  script["buffers"]["c"].erase("save");
  write();
  const CommandResult right =
      run_command({"ptx", "run", path("p.json"), "--device", "v100", "--cache", "warm"});
  EXPECT_EQ(right.exit_code, 0) << right.err;
  EXPECT_THAT(right.out, AllOf(HasSubstr("vecadd"), HasSubstr("2 kernels"), HasSubstr("v100-sxm2"),
                               HasSubstr("c: as "), HasSubstr("no findings")));
  script["steps"].erase(1);
  write();
  const json wrong = document({"ptx", "run", path("p.json")}, "ptx-program-run", 1);
  EXPECT_FALSE(wrong["expected"][0]["ok"]);
  EXPECT_EQ(wrong["expected"][0]["buffer"], "c");
  const CommandResult said = run_command({"ptx", "run", path("p.json")});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.out, HasSubstr("c: NOT as "));
  // Saved elsewhere; nothing after a finding.
  script = additions();
  write();
  EXPECT_EQ(run_command({"ptx", "run", path("p.json"), "--outputs", path("out")}).exit_code, 0);
  EXPECT_EQ(read_npy(path("out/c.npy")), c);
  script["steps"][1]["arguments"][3] = "i32:1001";
  script["steps"][1]["grid"] = 5;
  write();
  fs::remove(path("out/c.npy"));
  const json overrun =
      document({"ptx", "run", path("p.json"), "--outputs", path("out")}, "ptx-program-run", 1);
  EXPECT_EQ(overrun["findings"][0]["kind"], "out-of-bounds");
  EXPECT_FALSE(fs::exists(path("out/c.npy")));
  expect_refused({"ptx", "run", path("p.json"), "--grid", "4"}, {"--grid is of one launch"});
  expect_refused({"ptx", "run", path("p.json"), "--mode", "sampled"},
                 {"p.json", "outputs would be incomplete"});
  expect_refused({"ptx", "run", path("vecadd.ptx"), "--cache", "warm"},
                 {"--cache warm and --outputs are of a program"});
}

/// One of the dumps in a folder of the test's own, to be broken.
class Dumps : public Programs {
 protected:
  std::string copy(const std::string& dump) {
    fs::copy(kDumps / dump, folder_ / dump);
    return path(dump);
  }
  void edit(const std::string& dump, const std::function<void(json&)>& change) {
    json document = json::parse(read_file(path(dump + "/dump.json")));
    change(document);
    std::ofstream(path(dump + "/dump.json")) << document.dump(1);
  }
};

TEST_F(Dumps, AreRightAndHeldToTheirSchema) {
  struct Case {
    const char* dump;
    int kernels, calls;
  };
  for (const Case& c : {Case{"softmax-a100", 1, 0},
                        {"softmax-v100", 3, 0},
                        {"layer_norm-a100", 1, 0},
                        {"layer_norm-v100", 5, 0},
                        {"fig7-a100", 4, 0},
                        {"fig7-v100", 4, 0},
                        {"mlp-a100", 1, 2},
                        {"bert_layer-a100", 9, 6},
                        {"conv_grad-a100", 2, 4},
                        {"softmax-triton-a100", 1, 0},
                        {"softmax-inductor-a100", 1, 0},
                        {"layer_norm-inductor-a100", 1, 0},
                        {"fig7-inductor-a100", 2, 0}}) {
    SCOPED_TRACE(c.dump);
    held_to(json::parse(read_file((kDumps / c.dump / "dump.json").string())), "peer-dump");
    const json ran = document({"run", (kDumps / c.dump).string(), "--check"}, "dump-run");
    EXPECT_TRUE(ran["check"]["ok"]) << ran["check"];
    EXPECT_EQ(ran["counts"]["memory_kernels"], c.kernels);
    EXPECT_EQ(ran["counts"]["library_calls"], c.calls);
    EXPECT_TRUE(ran["findings"].empty());
    for (const json& step : ran["steps"]) {
      EXPECT_GT(step["time_us"], 0);
      EXPECT_EQ(step["method"], step["kind"] == "kernel" ? "simulated" : "modelled");
      EXPECT_FALSE(step["instruction"].get<std::string>().empty());
      // A copy of a parameter stands for no op of the model.
      EXPECT_TRUE(step["kind"] == "copy" || !step.at("ops").empty()) << step;
    }
  }
}

TEST_F(Dumps, RunAsTheirDevicesAndInputsSay) {
  const std::string dump = (kDumps / "mlp-a100").string();
  const json ran = document({"run", dump, "--check", "--sanitize", "race,init,sync", "--device",
                             "a100-pcie-40", "--seed", "3", "--outputs", path("out")},
                            "dump-run");
  EXPECT_EQ(ran["device"], "a100-pcie-40");
  EXPECT_TRUE(ran["check"]["ok"]);
  EXPECT_EQ(read_npy(path("out/out0.npy")).shape, Shape::array(DType::kF32, {64, 32}));
  EXPECT_EQ(read_npy(path("out/out1.npy")).shape, Shape::array(DType::kF32, {64, 96}));
  const CommandResult said = run_command({"run", dump, "--check"});
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("check: ok"), HasSubstr("jaxlib 0.10.2"), HasSubstr("the rest modelled")));
}

TEST_F(Dumps, RunTheirLoopsTripByTrip) {
  const std::string dump = copy("scan-a100");
  held_to(json::parse(read_file(dump + "/dump.json")), "peer-dump");
  const json ran = document({"run", dump, "--check"}, "dump-run");
  EXPECT_TRUE(ran["check"]["ok"]) << ran["check"];
  EXPECT_EQ(ran["counts"]["memory_kernels"], 2 + 3 * (4 + 2 * 2));
  EXPECT_EQ(ran["counts"]["product_kernels"], 3);
  EXPECT_EQ(ran["counts"]["copies"], 2 + 3 * (3 + 2 * 1));
  const json plan = document({"plan", dump}, "plan");
  EXPECT_EQ(plan["counts"]["memory_kernels"], 2 + 4 + 2);
  EXPECT_EQ(plan["counts"]["dynamic_memory_kernels"], ran["counts"]["memory_kernels"]);
  EXPECT_EQ(plan["computations"].size(), 2u);
  EXPECT_THAT(run_command({"run", dump}).out, HasSubstr("input_reduce_tanh_fusion          6"));

  edit("scan-a100", [](json& d) { d["loops"][0]["trips"] = 4; });
  expect_refused({"run", dump}, {"loops[0]", "4 trips of 14 steps from step 3 on: the program has 46"});
  edit("scan-a100", [](json& d) {
    d["loops"][0]["trips"] = 3;
    d["loops"][1]["trips"] = 5;
  });
  expect_refused({"run", dump}, {"loops[1]", "behind those of a loop around it, which end at step 17"});
  edit("scan-a100", [](json& d) {
    d["loops"][1]["trips"] = 2;
    d["loops"][1]["instruction"] = "while.99";
  });
  expect_refused({"run", dump}, {"a loop while.99, which the compiled module does not have there"});
}

/// What is written down for an array that is not row-major.
TEST_F(Dumps, ParametersAndResultsHaveLayouts) {
  const std::string dump = copy("fig7-a100");
  document({"run", dump, "--outputs", path("a")}, "dump-run");
  edit("fig7-a100", [](json& d) { d["results"][0]["layout"] = {0, 1}; });
  held_to(json::parse(read_file(dump + "/dump.json")), "peer-dump");
  document({"run", dump, "--outputs", path("b")}, "dump-run");
  const Literal a = read_npy(path("a/out0.npy")), b = read_npy(path("b/out0.npy"));
  ASSERT_EQ(a.shape, b.shape);
  const std::int64_t rows = a.shape.dims.at(0), cols = a.shape.dims.at(1);
  for (std::int64_t row = 0; row < rows; row += 7)
    for (std::int64_t col = 0; col < cols; ++col)
      ASSERT_EQ(b.get_double(row * cols + col), a.get_double(row + rows * col)) << row << ", " << col;
  edit("fig7-a100", [](json& d) { d["parameters"][0]["layout"] = {0, 0}; });
  expect_refused({"run", dump}, {"parameters[0].layout", "a layout has the 2 dimensions once each"});
}

TEST_F(Dumps, BrokenOnesAreRefusedInOneLine) {
  const std::string mlp = copy("mlp-a100"), fig7 = copy("fig7-v100");
  expect_refused({"run", fig7, "--device", "h100"},
                 {"dump.json", "sm_70 (v100)", "h100-sxm is sm_90", "v100-sxm2"});
  expect_refused({"run", fig7, "--planner", "xla"}, {"--planner is no option of a dump"});
  expect_refused({"run", path("nothing")}, {"nothing"});
  fs::rename(fig7 + "/kernels1.ptx", fig7 + "/away.ptx");
  expect_refused({"run", fig7}, {"dump.json", "program.modules[1]", "kernels1.ptx"});
  fs::rename(fig7 + "/away.ptx", fig7 + "/kernels1.ptx");
  std::ofstream(fig7 + "/kernels0.ptx") << ".version 8.0\n.target sm_70\n.address_size 64\n";
  expect_refused({"run", fig7}, {"dump.json", "program.steps[", "no module has a kernel"});
  edit("mlp-a100", [](json& d) { d["program"]["steps"][0].erase("computes"); });
  expect_refused({"run", mlp, "--check"},
                 {"program.steps[0]", "nobody here knows what __cublas$lt$matmul computes"});
  fs::remove_all(mlp);
  copy("mlp-a100");
  edit("mlp-a100", [](json& d) { d["parameters"].erase(4); });
  expect_refused({"run", mlp}, {"dump.json", "it has 4 parameters, the model 5"});
  edit("mlp-a100", [](json& d) { d["schema"] = "stitchwork.peer-dump/9"; });
  expect_refused({"run", mlp}, {"dump.json", "stitchwork.peer-dump/1"});
  fs::remove(mlp + "/before.hlo");
  edit("mlp-a100", [](json& d) { d["schema"] = "stitchwork.peer-dump/1"; });
  expect_refused({"run", mlp}, {"dump.json: model", "before.hlo is missing"});
}

/// A dump whose kernels compute something else fails its check, and so does one whose values lie elsewhere.
TEST_F(Dumps, WrongOnesFailTheCheck) {
  const std::string mlp = copy("mlp-a100");
  edit("mlp-a100", [](json& d) {
    std::string& text = d["program"]["steps"][1]["computes"].get_ref<std::string&>();
    const std::size_t at = text.find(" add(");
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, 5, " subtract(");
  });
  const json ran = document({"run", mlp, "--check"}, "dump-run", 1);
  EXPECT_FALSE(ran["check"]["ok"]);
  EXPECT_THAT(ran["check"]["message"].get<std::string>(), ::testing::Not(IsEmpty()));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
