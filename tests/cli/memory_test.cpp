// Memory that is not there is told in one line, before it is taken where that is known; nothing stays behind.
#include "core/base/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <new>

#include "core/base/file.h"
#include "tests/cli/run_command.h"
#include "tests/support/limited.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::limited;
using ::testing::Matcher;
using testing::run_command;

class CommandMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("memory_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return path(name);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static void expect_refused(const CommandResult& result, const Matcher<std::string>& message) {
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, AllOf(::testing::StartsWith("stitchwork: "), HasSubstr("; "), message));
  }

  /// What the command says in a process that has `bytes` left.
  CommandResult with_left(std::int64_t bytes, const std::vector<std::string>& words,
                          std::vector<std::string> (*taken)() = nullptr) {
    CommandResult result;
    result.exit_code = limited(bytes, [&] {
      const std::vector<std::string> held = taken != nullptr ? taken() : std::vector<std::string>();
      const CommandResult said = run_command(words);
      std::ofstream(folder_ / "out") << said.out;
      std::ofstream(folder_ / "err") << said.err;
      return said.exit_code;
    });
    result.out = read_file(path("out"));
    result.err = read_file(path("err"));
    return result;
  }
  fs::path folder_;
};

/// All the memory that there is, in pieces, but for a few MiB: what the allocator has reserved counts as
/// used.
std::vector<std::string> most_of_it() {
  std::vector<std::string> pieces;
  pieces.reserve(1 << 16);
  constexpr std::size_t kPiece = 1 << 20, kLeft = 4;
  try {
    for (;;) pieces.emplace_back(kPiece, 'x');
  } catch (const std::bad_alloc&) {
    pieces.resize(pieces.size() - std::min(pieces.size(), kLeft));
  }
  return pieces;
}

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

#ifdef SW_ADDRESS_SANITIZER
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr char kHugeParameter[] =
    "HloModule huge\nENTRY e {\n a = f32[1099511627776] parameter(0)\n"
    " ROOT r = f32[1099511627776] tanh(a)\n}\n";

/// Small as to what comes and goes: what is in between is not.
constexpr char kHugeBetween[] =
    "HloModule between\nsum { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"
    "ENTRY e {\n a = f32[1024] parameter(0)\n"
    " b = f32[1024,1073741824] broadcast(a), dimensions={0}\n"
    " t = f32[1024,1073741824] tanh(b)\n z = f32[] constant(0)\n"
    " ROOT r = f32[1024] reduce(t, z), dimensions={1}, to_apply=sum\n}\n";

TEST_F(CommandMemory, ParametersThatDoNotFitAreRefusedAndNoFolderStays) {
  expect_refused(with_left(kGiB, {"inputs", "moe_layer", "-o", path("new/in")}),
                 AllOf(HasSubstr("1.8 GiB of memory needed, "), HasSubstr(" available")));
  EXPECT_FALSE(fs::exists(path("new/in")));
}

TEST_F(CommandMemory, ItsEndIsOneLine) {
  if (kSanitized) GTEST_SKIP() << "AddressSanitizer takes address space of its own";
  expect_refused(with_left(kGiB / 64, {"plan", "bert_base"}, most_of_it),
                 AllOf(HasSubstr("this process may use no more memory ("), HasSubstr("`ulimit -v`")));
}

TEST_F(CommandMemory, AHugeParameterIsRefusedByWhateverFillsIt) {
  const std::string model = file("huge.hlo", kHugeParameter);
  const Matcher<std::string> numbers = AllOf(HasSubstr(" TiB of memory needed, "), HasSubstr(" available"));
  expect_refused(run_command({"run", model, "--db", path("runs.db")}), numbers);
  expect_refused(run_command({"run", model, "--check", "--db", path("runs.db")}), numbers);
  expect_refused(run_command({"inputs", model, "-o", path("in")}), numbers);
  expect_refused(run_command({"rewrite", model, "--check"}), numbers);
  expect_refused(run_command({"library", "collect", model, "--db", path("library.db")}), numbers);
  EXPECT_FALSE(fs::exists(path("in")));
}

TEST_F(CommandMemory, WhatTheReferenceHoldsOnTheWayCounts) {
  const std::string model = file("between.hlo", kHugeBetween);
  expect_refused(run_command({"run", model, "--check", "--db", path("runs.db")}),
                 HasSubstr("the run: 8.0 TiB of memory needed, "));
  expect_refused(run_command({"rewrite", model, "--check"}),
                 HasSubstr("evaluating both graphs: 8.0 TiB of memory needed, "));
}

TEST_F(CommandMemory, ABufferOfPtxIsAskedFor) {
  const std::string ptx = file("k.ptx",
                               ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".visible .entry k(.param .u64 out)\n{\n  ret;\n}\n");
  expect_refused(run_command({"ptx", "run", ptx, "--block", "32", "--arg", "buf:f64:68719476736:zero"}),
                 HasSubstr("f64[68719476736]: 512.0 GiB of memory needed, "));
}

TEST_F(CommandMemory, PlansOfHugeArraysAreMadeOrRefusedByTheirGrid) {
  const std::string model = file("huge.hlo", kHugeParameter);
  EXPECT_EQ(run_command({"plan", model, "--planner", "astitch"}).exit_code, 0);
  expect_refused(run_command({"plan", model, "--planner", "unfused"}),
                 AllOf(HasSubstr("huge.hlo: f32[1099511627776] is too large for planner unfused"),
                       HasSubstr("4,294,967,296 blocks")));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
