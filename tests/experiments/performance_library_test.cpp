// The performance library's file: what goes in comes out, what is no library is refused and left alone.
#include "experiments/performance_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/hlo/hlo_text.h"
#include "experiments/spec.h"
#include "experiments/store.h"
#include "experiments/trial.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PerformanceLibraryFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("library_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::vector<LibraryRow>& rows) const {
    LibraryWriter::open(path(name)).insert(rows);
    return path(name);
  }
  fs::path folder_;
};

LibraryRow row(const std::string& key, double us, const std::string& method = "simulated",
               const std::string& device = "v100-sxm2") {
  return {key, device, "NVRTC 13.0", us, method, "0123456789ab"};
}

template <typename Act>
std::string message(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("\n")));
    return error.what();
  }
  return "no error";
}

TEST_F(PerformanceLibraryFile, GivesBackWhatWentIn) {
  const LibraryRow tanh = row("tanh f32[64] row 0/4 t128", 2.5),
                   exp = row("exponential f32[64] row 0/4 t128", 0.1);
  const std::string file = write("a.library", {tanh, exp});
  const LibraryContents contents = read_library(file);
  EXPECT_THAT(contents.rows, ElementsAre(exp, tanh));
  EXPECT_EQ(contents.device(), "v100-sxm2");
  EXPECT_THAT(contents.methods, ElementsAre("simulated"));
  EXPECT_EQ(contents.sha256, sha256_hex(read_file(file)));
  const auto library = performance_library(contents, file, false);
  EXPECT_EQ(library.device, "v100-sxm2");
  EXPECT_EQ(library.sha256, contents.sha256);
  EXPECT_EQ(library.entries.at(tanh.key).us, 2.5);
  EXPECT_EQ(library.entries.at(tanh.key).method, "simulated");
}

TEST_F(PerformanceLibraryFile, WithoutTimesIsAddedToAndNotPlannedBy) {
  const std::string file = write("a.library", {});
  EXPECT_EQ(read_library(file).device(), "");
  EXPECT_THAT(message([&] { performance_library(read_library(file), file, false); }),
              HasSubstr("without times"));
  EXPECT_EQ(LibraryWriter::open(file).insert({row("a", 1)}), 1u);
}

TEST_F(PerformanceLibraryFile, KeepsTheFirstTimeOfAKey) {
  LibraryWriter writer = LibraryWriter::open(path("a.library"));
  EXPECT_EQ(writer.insert({row("a", 1), row("b", 2)}), 2u);
  EXPECT_EQ(writer.insert({row("b", 3), row("c", 4)}), 1u);
  EXPECT_THAT(read_library(path("a.library")).rows, ElementsAre(row("a", 1), row("b", 2), row("c", 4)));
}

TEST_F(PerformanceLibraryFile, OfTwoMethodsIsTakenOnlyWhenAsked) {
  const std::string file = write("a.library", {row("a", 1), row("b", 2), row("b", 3, "measured")});
  const LibraryContents contents = read_library(file);
  EXPECT_THAT(
      message([&] { performance_library(contents, file, false); }),
      AllOf(HasSubstr("a.library: has times of several methods: measured, simulated"), HasSubstr("--mixed")));
  const auto library = performance_library(contents, file, true);
  EXPECT_EQ(library.entries.at("a").method, "simulated");
  EXPECT_EQ(library.entries.at("b").method, "measured");
  EXPECT_EQ(library.entries.at("b").us, 3);
}

TEST_F(PerformanceLibraryFile, OfOneDeviceOnly) {
  const std::string file = write("a.library", {row("a", 1)});
  const std::string before = read_file(file);
  EXPECT_THAT(message([&] {
                LibraryWriter::open(file).insert({row("b", 1), row("c", 1, "simulated", "p100-sxm2")});
              }),
              HasSubstr("is a performance library of v100-sxm2, not of p100-sxm2"));
  EXPECT_EQ(read_file(file), before);
}

TEST_F(PerformanceLibraryFile, RefusesTimesThatAreNone) {
  for (const double us : {0.0, -1.0, std::numeric_limits<double>::infinity()})
    EXPECT_THAT(message([&] { write("a.library", {row("a", us)}); }), HasSubstr("has no time of 'a'"));
  EXPECT_THAT(message([&] { write("a.library", {row("a", 1, "guessed")}); }),
              HasSubstr("unknown method 'guessed'"));
  EXPECT_TRUE(read_library(path("a.library")).rows.empty());
}

TEST_F(PerformanceLibraryFile, WhatIsNoneIsRefusedAndLeftAlone) {
  EXPECT_THAT(message([&] { read_library(path("missing")); }),
              HasSubstr("there is no such performance library"));
  EXPECT_FALSE(fs::exists(path("missing")));
  EXPECT_THAT(message([&] { read_library(folder_.string()); }), HasSubstr("is a folder"));

  std::ofstream(path("text")) << std::string(4096, 'x');
  Store::open(path("runs.db"));
  write("newer", {row("a", 1)});
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path("newer").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA user_version = 99", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  for (const auto& [name, why] :
       {std::pair("text", "is no performance library"), std::pair("runs.db", "is a database of another kind"),
        std::pair("newer", "has library version 99, newer than")}) {
    const std::string before = read_file(path(name));
    EXPECT_THAT(message([&] { read_library(path(name)); }), HasSubstr(why));
    EXPECT_THAT(message([&] { LibraryWriter::open(path(name)); }), HasSubstr(why));
    EXPECT_EQ(read_file(path(name)), before);
  }
}

TEST_F(PerformanceLibraryFile, CutOffAtAnyPlaceIsRefused) {
  std::vector<LibraryRow> rows;
  for (int i = 0; i < 200; ++i)
    rows.push_back(row("tanh f32[" + std::to_string(i + 1) + "] row 0/1 t32", 1 + i));
  const std::string whole = read_file(write("a.library", rows));
  ASSERT_GT(whole.size(), 3 * 4096u);
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += bytes < 128 ? 16 : 997) {
    std::ofstream(path("cut"), std::ios::binary) << whole.substr(0, bytes);
    EXPECT_THAT(message([&] { read_library(path("cut")); }),
                ::testing::AnyOf(HasSubstr("is cut off or damaged"), HasSubstr("only the beginning of one")))
        << bytes;
    EXPECT_EQ(fs::file_size(path("cut")), bytes);
  }
}

TEST_F(PerformanceLibraryFile, MergesAllOrNothing) {
  const std::string a = write("a", {row("k1", 1), row("k2", 2)}),
                    b = write("b", {row("k2", 9), row("k3", 3)});
  const LibraryMerged merged = merge_libraries(path("all"), {a, b}, false);
  EXPECT_EQ(merged.added, 3u);
  EXPECT_EQ(merged.known, 1u);
  EXPECT_THAT(read_library(path("all")).rows, ElementsAre(row("k1", 1), row("k2", 2), row("k3", 3)));

  const std::string measured = write("measured", {row("k1", 4, "measured")}),
                    other = write("other", {row("k1", 4, "simulated", "p100-sxm2")});
  const std::string before = read_file(path("all"));
  EXPECT_THAT(message([&] {
                merge_libraries(path("all"), {b, measured}, false);
              }),
              HasSubstr("of several methods: measured, simulated"));
  EXPECT_THAT(message([&] {
                merge_libraries(path("all"), {a, other}, false);
              }),
              HasSubstr("other: is a performance library of p100-sxm2, not of v100-sxm2"));
  EXPECT_THAT(message([&] { merge_libraries(path("all"), {path("missing")}, false); }), HasSubstr("no such"));
  EXPECT_THAT(message([&] { merge_libraries(path("fresh"), {a, other}, false); }), HasSubstr("p100-sxm2"));
  EXPECT_FALSE(fs::exists(path("fresh")));
  EXPECT_EQ(read_file(path("all")), before);
  EXPECT_EQ(merge_libraries(path("all"), {measured}, true).added, 1u);
}

TEST_F(PerformanceLibraryFile, AKillLosesAtMostTheRowUnderWay) {
  for (const int wait_us : {500, 3000, 12000}) {
    fs::remove(path("a.library"));
    fs::remove(path("a.library-journal"));
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      LibraryWriter writer = LibraryWriter::open(path("a.library"));
      for (char i = 0;; ++i) {  // says each row that is in
        writer.insert({row("key " + std::to_string(i), 1)});
        if (::write(ends[1], &i, 1) != 1) ::_exit(1);
      }
    }
    char first = 0;
    ASSERT_EQ(::read(ends[0], &first, 1), 1);
    ::usleep(static_cast<useconds_t>(wait_us));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[1]);
    std::size_t said = 1;
    for (char one = 0; ::read(ends[0], &one, 1) == 1;) ++said;
    ::close(ends[0]);
    const std::size_t there = read_library(path("a.library")).rows.size();
    // Numbers beyond 127 wrap to keys that are there already.
    EXPECT_GE(there, std::min<std::size_t>(said, 256));
    EXPECT_LE(there, said + 1);
    EXPECT_EQ(LibraryWriter::open(path("a.library")).insert({row("another", 1)}), 1u);
  }
}

TEST_F(PerformanceLibraryFile, ExperimentsNameOneForThePlannersThatTakeIt) {
  const std::string file = write("v100.library", {row("tanh f32[64] row 0/4 t128", 2.5)});
  const auto parse = [&](const std::string& library, const std::string& device, const std::string& planners) {
    return parse_experiment(R"({"schema":"stitchwork.experiment/1","name":"n","workloads":["softmax_tiny"],)"
                            R"("variants":[)" +
                                planners + R"(],"devices":[")" + device + R"("],"library":")" + library +
                                R"("})",
                            "spec.json");
  };
  const std::string both = R"({"planner":"xla"},{"planner":"fusionstitching-2018"})";
  const ExperimentSpec spec = parse(file, "v100", both);
  EXPECT_EQ(trial_of(spec, {0, 0, 0, 0}).options.library, nullptr);
  const TrialSpec trial = trial_of(spec, {0, 1, 0, 0});
  ASSERT_NE(trial.options.library, nullptr);
  TrialSpec without = trial;
  without.options.library = nullptr;
  const Model model = load_model("softmax_tiny");
  EXPECT_EQ(trial_params(model, trial)["library"], read_library(file).sha256);
  EXPECT_NE(trial_key(model, trial), trial_key(model, without));
  EXPECT_THAT(message([&] { parse(file, "p100", both); }), HasSubstr("is of v100-sxm2, not of p100-sxm2"));
  EXPECT_THAT(message([&] { parse(path("missing"), "v100", both); }),
              HasSubstr("no such performance library"));
  EXPECT_THAT(message([&] { parse(file, "v100", R"({"planner":"xla"})"); }),
              HasSubstr("no variant's planner"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
