// compile --all-stages: a folder that is whole or not there.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "codegen/compile/compiler.h"
#include "codegen/compile/disassemble.h"
#include "codegen/compile/ptxas.h"
#include "core/base/file.h"
#include "tests/cli/run_command.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JsonSchema;
using testing::run_command;

class Stages : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder), fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
  }
  // One a test: others run beside it.
  fs::path folder = fs::path(::testing::TempDir()) /
                    fmt::format("stages_{}", ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Stages, TheIndexNamesEveryFileAndWhatIsMissing) {
  const CommandResult said = run_command(
      {"compile", "fig5", "--planner", "fusionstitching", "--all-stages", "-o", path("all"), "--json"});
  ASSERT_EQ(said.exit_code, 0) << said.out << said.err;
  const auto index = nlohmann::json::parse(said.out);
  EXPECT_THAT(JsonSchema::read("docs/schema/stages.schema.json").problems(index), IsEmpty());
  EXPECT_EQ(index, nlohmann::json::parse(read_file(path("all/index.json"))));
  std::set<std::string> named{"index.json", "index.md"}, there;
  for (const auto& stage : index["stages"]) {
    EXPECT_EQ(stage["files"].empty(), stage.contains("missing")) << stage;
    for (const auto& file : stage["files"]) {
      named.insert(file);
      EXPECT_FALSE(read_file(path("all/" + file.get<std::string>())).empty()) << file;
    }
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder / "all"))
    if (entry.is_regular_file()) there.insert(fs::relative(entry.path(), folder / "all").string());
  EXPECT_EQ(named, there);
  EXPECT_THAT(read_file(path("all/1-read.hlo")), HasSubstr("ENTRY"));
  EXPECT_THAT(read_file(path("all/4-templates.txt")), HasSubstr("cta_num"));
  EXPECT_THAT(read_file(path("all/index.md")), HasSubstr("(7-memory.txt)"));
  EXPECT_EQ(entries(), 1u) << "nothing else stays beside it";
  EXPECT_EQ(run_command({"verify", path("all/3-plan.json")}).exit_code, 0);
}

TEST_F(Stages, AFolderWithFilesIsRefusedUnlessAskedFor) {
  fs::create_directories(folder / "all");
  write_file(path("all/mine.txt"), "mine");
  const CommandResult refused = run_command({"compile", "fig5", "--all-stages", "-o", path("all")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("has files already; name a new folder, or --force"));
  EXPECT_FALSE(fs::exists(folder / "all/index.md"));
  EXPECT_EQ(run_command({"compile", "fig5", "--all-stages", "--force", "-o", path("all")}).exit_code, 0);
  EXPECT_EQ(read_file(path("all/mine.txt")), "mine");
  EXPECT_TRUE(fs::exists(folder / "all/index.md"));
  write_file(path("file"), "");
  EXPECT_THAT(run_command({"compile", "fig5", "--all-stages", "-o", path("file")}).err,
              HasSubstr("is no folder"));
  fs::create_directories(folder / "target");
  fs::create_directory_symlink(folder / "target", folder / "link");
  EXPECT_EQ(run_command({"compile", "fig5", "--all-stages", "-o", path("link")}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::exists(folder / "target/index.md"));
  const CommandResult plain = run_command({"compile", "fig5", "--force", "-o", path("other")});
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_THAT(plain.err, HasSubstr("--force is for --all-stages"));
}

TEST_F(Stages, AModelThatOnlyPlansLeavesNothing) {
  write_file(path("m.hlo"),
             "HloModule m\nminus {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
             "  ROOT d = f32[] subtract(a, b)\n}\nENTRY e {\n  x = f32[8,16] parameter(0)\n"
             "  zero = f32[] constant(0)\n"
             "  ROOT r = f32[8] reduce(x, zero), dimensions={1}, to_apply=minus\n}\n");
  const CommandResult said = run_command({"compile", path("m.hlo"), "--all-stages", "-o", path("all")});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.err, HasSubstr("not one commutative operation"));
  EXPECT_EQ(entries(), 1u) << "the model alone";
}

/// A disassembler of ours in front of PATH, which this test gives back.
class WithDisassembler : public Stages {
 protected:
  void SetUp() override {
    Stages::SetUp();
    if (find_ptxas().empty()) GTEST_SKIP() << "machine code is made by ptxas, which is not here";
    setenv("PATH", (folder.string() + ":" + before).c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", before.c_str(), 1);
    Stages::TearDown();
  }
  void disassembler(const std::string& script) {
    write_file(path("nvdisasm"), "#!/bin/sh\n" + script + "\n");
    fs::permissions(path("nvdisasm"), fs::perms::owner_all);
  }
  const std::string before = std::getenv("PATH");
};

TEST_F(WithDisassembler, MachineCodeIsThereWhereTheToolkitIs) {
  if (!fs::path(find_disassembler().nvdisasm).empty()) GTEST_SKIP() << "the toolkit has one of its own";
  disassembler("echo disassembled; test -s \"$1\"");
  ASSERT_EQ(run_command({"compile", "fig5", "--all-stages", "-o", path("all")}).exit_code, 0);
  std::size_t sass = 0;
  for (const auto& entry : fs::directory_iterator(folder / "all/kernels"))
    if (entry.path().extension() == ".sass") {
      ++sass;
      EXPECT_EQ(read_file(entry.path().string()), "disassembled\n");
    }
  EXPECT_GE(sass, 1u);
}

TEST_F(WithDisassembler, WhatFailsLeavesNothing) {
  if (!fs::path(find_disassembler().nvdisasm).empty()) GTEST_SKIP() << "the toolkit has one of its own";
  disassembler("echo error: broken; exit 3");
  const CommandResult said = run_command({"compile", "fig5", "--all-stages", "-o", path("all")});
  EXPECT_EQ(said.exit_code, 1) << said.out;
  EXPECT_THAT(said.err, HasSubstr("error: broken"));
  EXPECT_EQ(run_command({"compile", "fig5", "--all-stages", "-o", path("all/")}).exit_code, 1);
  EXPECT_EQ(entries(), 1u) << "the disassembler alone";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
