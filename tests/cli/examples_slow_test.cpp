// What --help shows works as it stands: every example of every command is run in a folder that has the files
// it names.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "tests/cli/run_command.h"
#include "tests/support/onnx_model.h"
#include "tests/support/profile_files.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::CommandResult;
using testing::run_command;

const fs::path kSource = STITCHWORK_SOURCE_DIR;

/// Examples that this test does not run, by their beginnings, and what they take; their options are parsed
/// all the same by the commands' own tests.
const std::map<std::string, std::string> kElsewhere = {
    {"reproduce", "minutes of simulation (tests/experiments)"},
    {"figure fig11", "what reproduce has stored (tests/figures)"},
    {"report astitch.db --paper", "what reproduce has stored (tests/experiments)"},
    {"demo", "minutes of simulation"},
    {"experiment run experiments/astitch/models.json --db", "hours of simulation"},
    {"experiment submit", "Slurm"},
    {"compile bert_layer --device h200 --cubin", "a CUDA toolkit"},
    {"library collect bert_layer --backend cuda", "a GPU"},
    {"explore scrnn_tiny --times measured", "a GPU"},
    {"explore --buckets", "models of several lengths (datasets/export)"},
    {"view bert_base", "half a minute of planning by auto"},
};

/// The commands below `words` with their help texts, the program's own first.
void collect(const std::vector<std::string>& words, std::map<std::string, std::string>& helps) {
  std::vector<std::string> asked = words;
  asked.emplace_back("--help");
  const CommandResult help = run_command(asked);
  ASSERT_EQ(help.exit_code, 0) << help.err;
  helps[fmt::format("{}", fmt::join(words, " "))] = help.out;
  std::istringstream lines(help.out);
  bool commands = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Subcommands:") || line.starts_with("SUBCOMMANDS:")) {
      commands = true;
    } else if (commands && line.starts_with("  ") && !line.starts_with("   ")) {
      std::vector<std::string> next = words;
      next.push_back(line.substr(2, line.find(' ', 2) - 2));
      collect(next, helps);
    } else if (!line.starts_with(" ")) {
      commands = false;
    }
  }
}

/// The commands of "Examples:", continued lines joined, parts of `&&` apart.
std::vector<std::string> examples_of(const std::string& help) {
  std::vector<std::string> found;
  const std::size_t at = help.find("Examples:");
  if (at == std::string::npos) return found;
  std::istringstream lines(help.substr(at));
  std::string joined;
  for (std::string line; std::getline(lines, line);) {
    joined += line;
    if (joined.ends_with("\\")) {
      joined.pop_back();
      continue;
    }
    for (std::size_t from = 0; from < joined.size();) {
      const std::size_t end = std::min(joined.find("&&", from), joined.size());
      std::string part = joined.substr(from, end - from);
      from = end + 2;
      for (const char* around : {"source <(", ")", "| source"})
        if (const std::size_t where = part.find(around); where != std::string::npos)
          part.erase(where, std::string(around).size());
      const std::size_t program = part.find("stitchwork ");
      if (program == std::string::npos) continue;
      part.erase(0, program + std::string("stitchwork ").size());
      if (const std::size_t note = part.find("    "); note != std::string::npos && !part.starts_with("ptx"))
        part.resize(note);
      if (const std::size_t file = part.find(" > "); file != std::string::npos) part.resize(file);
      found.push_back(part);
    }
    joined.clear();
  }
  return found;
}

void store(const std::string& experiment, const std::string& db) {
  std::ofstream("spec-" + experiment + ".json")
      << fmt::format(R"({{"schema":"stitchwork.experiment/1","name":"{}","workloads":["fig7","softmax"],
"variants":[{{"name":"XLA","planner":"xla"}},{{"name":"AStitch","planner":"astitch"}}],
"devices":["v100"],"backend":"model"}})",
                     experiment);
  const CommandResult made = run_command({"experiment", "run", "spec-" + experiment + ".json", "--db", db});
  ASSERT_EQ(made.exit_code, 0) << made.err;
}

/// The files that examples name.
void make_files() {
  fs::copy(kSource / "datasets/softmax.hlo", "my_model.hlo");
  fs::copy(kSource / "datasets/softmax.hlo", "YOUR_MODEL.hlo");
  fs::copy(kSource / "tests/simulator/ptx/vecadd.ptx", "vecadd.ptx");
  fs::create_directory_symlink(kSource / "experiments", "experiments");
  fs::create_directory_symlink(kSource / "tests/data/dumps", "dumps");
  std::ofstream("program.json") << R"({"schema": "stitchwork.ptx-program/1", "modules": ["vecadd.ptx"],
"buffers": {"x": {"type": "f32", "shape": [1024], "fill": {"seed": 1}}, "y": {"type": "f32", "shape": [1024]}},
"steps": [{"kernel": "vecadd", "grid": 4, "block": 256, "arguments": ["x", "x", "y", "i32:1024"]}]})";
  OnnxModel onnx;
  onnx.input("x", {std::string("batch"), 4}).output("y");
  onnx.node("Relu", {"x"}, {"y"});
  std::ofstream("my_model.onnx", std::ios::binary) << onnx.bytes();
  ASSERT_EQ(run_command("plan fig7 -o plan.json").exit_code, 0);
  std::ofstream("run.json") << run_command("run softmax_tiny --json").out;
  std::ofstream("edits.json") << R"({"schema":"stitchwork.override/1",
"edits":[{"do":"forbid_merge","ops":["power.1","reduce.2"]}]})";
  std::ofstream("ncu.csv") << "\"ID\",\"Kernel Name\",\"dram__sectors_read.sum\"\n\"\",\"\",\"sector\"\n"
                              "\"0\",\"k\",\"12\"\n";
  const std::vector<testing::MadeLaunch> launches = {{"loop_power_fusion", "loop_power_fusion", 2}};
  std::ofstream("jax.json") << testing::jax_trace(launches, 3, "fig7").dump();
  testing::write_nsys("nsys.sqlite", launches, 3, "fig7");
  std::ofstream("torch.json")
      << testing::torch_trace({{"triton_per_fused_0", "", 9}, {"triton_red_fused_1", "", 15}}, 3).dump();
  for (const char* db : {"astitch.db", "astitch-models.db"}) store("astitch-models", db);
  for (const char* db : {"old.db", "new.db"}) store("nightly", db);
  for (const char* db : {"monday.library", "tuesday.library"})
    ASSERT_EQ(run_command(fmt::format("library collect column_sum_tiny --db {}", db)).exit_code, 0);
  for (const char* db : {"shard1.db", "shard2.db", "shard3.db"}) store("shards", db);
}

TEST(ExamplesSlow, OfEveryHelpRun) {
  const fs::path folder = fs::path(::testing::TempDir()) / "examples", before = fs::current_path();
  fs::remove_all(folder);
  fs::create_directories(folder);
  fs::current_path(folder);
  ::setenv("XDG_DATA_HOME", folder.c_str(), 1);
  make_files();
  std::map<std::string, std::string> helps;
  collect({}, helps);
  // The default store of `experiment show` and the like.
  fs::create_directories("stitchwork");
  fs::copy("astitch.db", "stitchwork/runs.db", fs::copy_options::overwrite_existing);
  int ran = 0;
  for (const auto& [command, help] : helps) {
    const std::vector<std::string> examples = examples_of(help);
    if (help.find("Subcommands:") == std::string::npos && help.find("SUBCOMMANDS:") == std::string::npos) {
      EXPECT_FALSE(examples.empty()) << command << " has no examples";
    }
    for (const std::string& example : examples) {
      const bool elsewhere = std::any_of(kElsewhere.begin(), kElsewhere.end(),
                                         [&](const auto& row) { return example.starts_with(row.first); });
      if (elsewhere) continue;
      const CommandResult result = run_command(example);
      // `diff --fail-on` and `compare --fail-on` answer by 3.
      EXPECT_TRUE(result.exit_code == 0 ||
                  (result.exit_code == 3 && example.find("--fail-on") != example.npos))
          << command << ": stitchwork " << example << "\n"
          << result.err;
      ++ran;
    }
  }
  EXPECT_GT(ran, 50);
  fs::current_path(before);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
