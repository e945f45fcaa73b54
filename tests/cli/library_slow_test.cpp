// The performance library end to end: collected, killed, taken up again, and what planning by it is worth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "analysis/planners/fusionstitching/library_key.h"
#include "core/base/file.h"
#include "experiments/library_collect.h"
#include "experiments/performance_library.h"
#include "experiments/trial.h"
#include "tests/cli/run_command.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

namespace fs = std::filesystem;
using fusionstitching::PerformanceLibrary;
using ::testing::HasSubstr;
using testing::run_command;

const std::vector<std::string> kModels = {"softmax_tiny", "layer_norm_tiny"};

std::string fresh_folder(const std::string& name) {
  const fs::path folder = fs::path(::testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  setenv("XDG_DATA_HOME", folder.c_str(), 1);
  return folder.string();
}

nlohmann::json collect(const std::string& file, const std::vector<std::string>& models = kModels) {
  std::vector<std::string> words = {"library", "collect", "--device", "v100",  "--backend",
                                    "sim",     "--db",    file,       "--json"};
  words.insert(words.begin() + 2, models.begin(), models.end());
  const testing::CommandResult result = run_command(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

/// A child process collects and says how many keys are in before each that it runs; killed after `keys`.
/// Returns what it said last.
std::size_t killed_after(const std::string& file, std::size_t keys) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<Model> models;
    for (const std::string& name : kModels) models.push_back(load_model(name));
    CollectOptions options;
    options.progress = [&](std::size_t done, std::size_t of, const std::string&) {
      if (of > 0 && ::write(ends[1], &done, sizeof done) != sizeof done) ::_exit(1);
    };
    collect_library(models, device("v100"), file, options);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::size_t said = 0;
  for (std::size_t done = 0; said < keys && ::read(ends[0], &done, sizeof done) == sizeof done;) said = done;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (std::size_t done = 0; ::read(ends[0], &done, sizeof done) == sizeof done;) said = done;
  ::close(ends[0]);
  return said;
}

TEST(LibrarySlow, AKilledCollectionLosesAtMostAKeyAndTheSecondBuildsNothing) {
  const std::string folder = fresh_folder("library_killed"), file = folder + "/v100.library";
  const std::size_t said = killed_after(file, 20);
  ASSERT_GE(said, 20u);
  const std::size_t there = read_library(file).rows.size();
  EXPECT_GE(there, said);
  EXPECT_LE(there, said + 1);

  const nlohmann::json rest = collect(file);
  EXPECT_EQ(rest["built"], rest["keys"].get<std::size_t>() - there);  // none twice
  EXPECT_GT(rest["built"], 0);
  EXPECT_EQ(rest["missing"], 0);
  const std::string bytes = read_file(file);
  const nlohmann::json again = collect(file);
  EXPECT_EQ(again["built"], 0);
  EXPECT_EQ(again["rounds"], 1);
  EXPECT_EQ(read_file(file), bytes);
}

FusionPlan plan_by(const Model& model, const PerformanceLibrary& library, std::vector<Edit> edits = {}) {
  PlanOptions options;
  options.edits = std::move(edits);
  options.record_decisions = true;
  options.library = &library;
  return make_plan(model.graph, device("v100"), "fusionstitching-2018", options);
}

double simulated_us(const Model& model, const FusionPlan& plan) {
  TrialSpec spec;
  spec.planner = "fusionstitching-2018";
  spec.plan = plan;
  const TrialResult result = run_trial(model, spec);
  EXPECT_TRUE(result.ok());
  double us = 0;
  for (const KernelRun& kernel : result.run.kernels) us += kernel.time_us;
  return us;
}

/// The library with all schedules but those of so many blocks and threads too slow to be taken; which of
/// several kernels of a key's op is fastest there stays.
PerformanceLibrary only(const PerformanceLibrary& library, std::int64_t blocks, int threads) {
  PerformanceLibrary result = library;
  for (auto& [text, entry] : result.entries) {
    const auto key = fusionstitching::parse_library_key(text);
    const bool wanted =
        fusionstitching::blocks_of(key.schedule, result_dims(key.op)) == blocks && key.threads == threads;
    entry.us = wanted ? entry.us * 1e-3 : entry.us * 1e3;
  }
  return result;
}

/// The chosen kernels' time over the best of all blocks and threads of the library's keys.
void expect_nearly_the_best(const Model& model, const PerformanceLibrary& library) {
  const std::string& name = model.graph.source;
  std::set<std::pair<std::int64_t, int>> launches;
  for (const auto& [text, entry] : library.entries) {
    const auto key = fusionstitching::parse_library_key(text);
    launches.emplace(fusionstitching::blocks_of(key.schedule, result_dims(key.op)), key.threads);
  }
  const FusionPlan chosen = plan_by(model, library);
  int sums = 0;
  for (const Decision& d : chosen.decisions)
    if (d.verdict.rule == "fs18.schedule" &&
        d.verdict.why.find("the sum over its ops") != std::string::npos) {
      EXPECT_THAT(d.verdict.why, HasSubstr("(simulated)"));
      ++sums;
    }
  EXPECT_GE(sums, 1);
  const KernelLaunch& launch = chosen.kernels.at(0).launch;
  double best = INFINITY;
  int others = 0;
  std::string best_launch;
  for (const auto& [blocks, threads] : launches) {
    std::vector<Edit> edits;
    for (const KernelPlan& kernel : chosen.kernels)
      edits.push_back({EditKind::kBlock,
                       {model.graph.entry_computation().node(kernel.outputs.front()).name},
                       "",
                       threads});
    const FusionPlan other = plan_by(model, only(library, blocks, threads), edits);
    const auto is_wanted = [&, b = blocks, t = threads](const KernelPlan& kernel) {
      return kernel.launch.grid == b && kernel.launch.block == t;
    };
    if (other.kernels.size() != chosen.kernels.size() ||
        !std::all_of(other.kernels.begin(), other.kernels.end(), is_wanted))
      continue;  // no schedule of the fusion has so many blocks
    ++others;
    const double us = simulated_us(model, other);
    ::testing::Test::RecordProperty(fmt::format("{}_{}x{}", name, blocks, threads),
                                    fmt::format("{:.3f}", us));
    if (us < best) best_launch = fmt::format("{} blocks of {}", blocks, threads);
    best = std::min(best, us);
  }
  EXPECT_GE(others, 12) << name;  // two numbers of blocks, six of threads
  const double us = simulated_us(model, chosen);
  ::testing::Test::RecordProperty(name + "_chosen", fmt::format("{:.3f}", us));
  EXPECT_LE(us, 1.05 * best) << name << ": " << launch.grid << " blocks of " << launch.block << ", best "
                             << best_launch;
}

TEST(LibrarySlow, TheChosenScheduleIsNearlyTheBestOfAllSchedulesAndThreads) {
  const std::string folder = fresh_folder("library_chosen"), file = folder + "/v100.library";
  ASSERT_EQ(collect(file)["missing"], 0);
  const PerformanceLibrary library = performance_library(read_library(file), file, false);
  for (const std::string& name : kModels) expect_nearly_the_best(load_model(name), library);
}

/// Rows of some columns, reduced once or twice and read again.
std::string drawn_text(std::mt19937_64& rng) {
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(rng); };
  const int rows = draw(2, 96), columns = draw(8, 400);
  const std::string s = fmt::format("f32[{},{}]", rows, columns), r = fmt::format("f32[{}]", rows);
  std::string text = fmt::format(
      "HloModule drawn\n"
      "sum {{\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}}\n"
      "max {{\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, b)\n}}\n"
      "ENTRY main {{\n zero = f32[] constant(0)\n low = f32[] constant(-1e30)\n x0 = {} parameter(0)\n",
      s);
  const int steps = draw(1, 3);
  for (int i = 0; i < steps; ++i) {
    const bool largest = draw(0, 1) == 0;
    const std::array unary = {"exponential", "negate", "tanh", "abs"};
    const std::array binary = {"subtract", "divide", "multiply", "maximum"};
    text += fmt::format(" r{0} = {1} reduce(x{0}, {2}), dimensions={{1}}, to_apply={3}\n", i, r,
                        largest ? "low" : "zero", largest ? "max" : "sum");
    text += fmt::format(" b{0} = {1} broadcast(r{0}), dimensions={{0}}\n", i, s);
    text +=
        fmt::format(" y{0} = {1} {2}(x{0}, b{0})\n", i, s, binary.at(static_cast<std::size_t>(draw(0, 3))));
    text +=
        fmt::format(" x{0} = {1} {2}(y{3})\n", i + 1, s, unary.at(static_cast<std::size_t>(draw(0, 3))), i);
  }
  return text + fmt::format(" ROOT out = {0} copy(x{1})\n}}\n", s, steps);
}

/// STITCHWORK_FUZZ_FIRST and STITCHWORK_FUZZ_SEEDS: which are drawn.
TEST(LibrarySlow, AndOnDrawnShapes) {
  const testing::FuzzRange range = testing::fuzz_range(1, 1);
  const std::string folder = fresh_folder("library_drawn");
  for (std::uint32_t seed = range.first; seed < range.end; ++seed) {
    std::mt19937_64 rng(seed);
    const std::string model = fmt::format("{}/drawn{}.hlo", folder, seed);
    write_file(model, drawn_text(rng));
    const std::string file = fmt::format("{}/{}.library", folder, seed);
    ASSERT_EQ(collect(file, {model})["missing"], 0);
    expect_nearly_the_best(load_model(model), performance_library(read_library(file), file, false));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
