// State of loops and branches: how long its buffers live, and that nothing reads one that is gone.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/file.h"
#include "core/passes/trip_count.h"
#include "runtime/simulator_backend.h"
#include "tests/runtime/control_flow_runs.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::IsEmpty;

std::vector<std::string> problems(const std::string& text) {
  testing::ControlFlowRuns runs;
  return runs.problems(text, 0, true);
}

constexpr const char* kPair =
    "(f32[9], f32[9]) parameter(0)\n  a = f32[9] get-tuple-element(s), index=0\n"
    "  b = f32[9] get-tuple-element(s), index=1\n";
constexpr const char* kCounted =
    "(s32[], f32[9]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
    "  c = f32[9] get-tuple-element(s), index=1\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
    "  t = f32[9] negate(c)\n";
constexpr const char* kTwice =
    "cond {\n  s = (s32[], f32[9]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
    "  n = s32[] constant(2)\n  ROOT l = pred[] compare(i, n), direction=LT\n}\n"
    "ENTRY main {\n  x = f32[9] parameter(0)\n  z = s32[] constant(0)\n  st = (s32[], f32[9]) tuple(z, x)\n"
    "  w = (s32[], f32[9]) while(st), condition=cond, body=body\n"
    "  ROOT d = f32[9] get-tuple-element(w), index=1\n}\n";

TEST(ControlFlow, AnElementThatAKernelHasReadGoesIntoALoopsState) {
  SKIP_WITHOUT_COMPILER();
  EXPECT_THAT(problems(fmt::format(
                  "HloModule m\nbody {{\n  s = {0}  ROOT r = (f32[9], f32[9]) tuple(b, b)\n}}\n"
                  "cond {{\n  s = (f32[9], f32[9]) parameter(0)\n  ROOT l = pred[] constant(false)\n}}\n"
                  "ENTRY main {{\n  p = (f32[9], f32[9]) parameter(0)\n"
                  "  c = f32[9] get-tuple-element(p), index=0\n  t = f32[9] negate(c)\n"
                  "  st = (f32[9], f32[9]) tuple(c, t)\n"
                  "  w = (f32[9], f32[9]) while(st), condition=cond, body=body\n"
                  "  ROOT d = f32[9] get-tuple-element(w), index=0\n}}\n",
                  kPair)),
              IsEmpty());
}

TEST(ControlFlow, BranchesInALoopShareAStateOfWhatKernelsRead) {
  SKIP_WITHOUT_COMPILER();
  EXPECT_THAT(
      problems(fmt::format("HloModule m\nf {{\n  s = {0}  ROOT r = f32[9] add(a, b)\n}}\n"
                           "g {{\n  s = {0}  ROOT r = f32[9] subtract(a, b)\n}}\n"
                           "body {{\n  s = {1}  gt = pred[] compare(i, one), direction=GT\n"
                           "  st = (f32[9], f32[9]) tuple(c, t)\n"
                           "  d = f32[9] conditional(gt, st, st), true_computation=f, false_computation=g\n"
                           "  ROOT r = (s32[], f32[9]) tuple(j, d)\n}}\n{2}",
                           kPair, kCounted, kTwice)),
      IsEmpty());
}

/// Its counter was the stale value: it did not end.
TEST(ControlFlow, ALoopStartsFromTheCounterOfTheOneAround) {
  SKIP_WITHOUT_COMPILER();
  EXPECT_THAT(problems(fmt::format(
                  "HloModule m\nibody {{\n  s = (s32[], f32[9], f32[9]) parameter(0)\n"
                  "  i = s32[] get-tuple-element(s), index=0\n  b = f32[9] get-tuple-element(s), index=2\n"
                  "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n"
                  "  ROOT r = (s32[], f32[9], f32[9]) tuple(j, b, b)\n}}\n"
                  "icond {{\n  s = (s32[], f32[9], f32[9]) parameter(0)\n"
                  "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(0)\n"
                  "  ROOT l = pred[] compare(i, n), direction=LT\n}}\n"
                  "body {{\n  s = {0}  st = (s32[], f32[9], f32[9]) tuple(i, c, t)\n"
                  "  w = (s32[], f32[9], f32[9]) while(st), condition=icond, body=ibody\n"
                  "  d = f32[9] get-tuple-element(w), index=1\n"
                  "  ROOT r = (s32[], f32[9]) tuple(j, d)\n}}\n{1}",
                  kCounted, kTwice)),
              IsEmpty());
}

TEST(ControlFlow, ALoopInALoopGivesOneElementTwice) {
  SKIP_WITHOUT_COMPILER();
  EXPECT_THAT(problems(fmt::format(
                  "HloModule m\nibody {{\n  s = {0}  ROOT r = (f32[9], f32[9]) tuple(b, b)\n}}\n"
                  "icond {{\n  s = (f32[9], f32[9]) parameter(0)\n  ROOT l = pred[] constant(false)\n}}\n"
                  "body {{\n  s = {1}  st = (f32[9], f32[9]) tuple(c, t)\n"
                  "  w = (f32[9], f32[9]) while(st), condition=icond, body=ibody\n"
                  "  d = f32[9] get-tuple-element(w), index=0\n"
                  "  ROOT r = (s32[], f32[9]) tuple(j, d)\n}}\n{2}",
                  kPair, kCounted, kTwice)),
              IsEmpty());
}

TEST(ControlFlow, RandomNestsComputeWhatTheGraphMeans) {
  SKIP_WITHOUT_COMPILER();
  testing::ControlFlowRuns runs;
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    const std::string text = testing::random_control_flow(seed);
    EXPECT_THAT(runs.problems(text, seed, false), IsEmpty()) << "seed " << seed << "\n" << text;
  }
  EXPECT_GT(runs.launches, runs.runs);
}

TEST(ControlFlow, CountedLoopsLaunchWhatThePlanCountsAndNoCondition) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  const Graph graph = testing::graph_of(fmt::format(
      "HloModule m\nbody {{\n  s = {}  ROOT r = (s32[], f32[9]) tuple(j, t)\n}}\n{}", kCounted, kTwice));
  const FusionPlan plan = make_plan(graph, target, "unfused");
  const Executable executable = compile(graph, target, plan, testing::compile_options());
  const std::vector<Literal> inputs = generate_inputs(graph, 0);
  const RunResult run = run_simulated(graph, target, executable, inputs);
  ASSERT_EQ(run.computations.size(), 1u);
  EXPECT_EQ(run.computations[0].runs, 2);
  std::int64_t launches = 0;
  double kernels_us = 0;
  for (const KernelRun& kernel : run.computations[0].kernels) {
    launches += kernel.launches;
    kernels_us += kernel.time_us;
  }
  EXPECT_EQ(launches, plan.counts.dynamic_memory_kernels);
  // Between launches lies a gap each, in a body as between bodies; the estimate has as many.
  EXPECT_NEAR(run.total_us, kernels_us + static_cast<double>(launches - 1) * target.launch_gap_us, 1e-9);
  double estimated_us = 0;
  for (const KernelPlan& kernel : plan.computations[0].plan.kernels) estimated_us += 2 * kernel.predicted_us;
  EXPECT_NEAR(plan.predicted_us, estimated_us + static_cast<double>(launches - 1) * target.launch_gap_us,
              1e-9);
  EXPECT_EQ(run.outputs.at(0).bytes, inputs.at(0).bytes) << "negated twice";
}

TEST(ControlFlow, WrongTripsOfAUserChangeNoResult) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("v100");
  // The bound is a parameter: its trips are not known.
  const Graph graph = with_trips(
      testing::graph_of(
          "HloModule m\ncond {\n  s = (s32[], f32[9], s32[]) parameter(0)\n"
          "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] get-tuple-element(s), index=2\n"
          "  ROOT l = pred[] compare(i, n), direction=LT\n}\n"
          "body {\n  s = (s32[], f32[9], s32[]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
          "  c = f32[9] get-tuple-element(s), index=1\n  n = s32[] get-tuple-element(s), index=2\n"
          "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  t = f32[9] add(c, c)\n"
          "  ROOT r = (s32[], f32[9], s32[]) tuple(j, t, n)\n}\n"
          "ENTRY main {\n  x = f32[9] parameter(0)\n  n = s32[] parameter(1)\n  z = s32[] constant(0)\n"
          "  st = (s32[], f32[9], s32[]) tuple(z, x, n)\n"
          "  w = (s32[], f32[9], s32[]) while(st), condition=cond, body=body\n"
          "  ROOT d = f32[9] get-tuple-element(w), index=1\n}\n"),
      {{"w", 50}});
  const Executable executable =
      compile(graph, target, make_plan(graph, target, "unfused"), testing::compile_options());
  std::vector<Literal> inputs = generate_inputs(graph, 0);
  inputs[1].set_int(0, 3);
  const RunResult run = run_simulated(graph, target, executable, inputs);
  for (std::int64_t i = 0; i < 9; ++i)
    EXPECT_EQ(run.outputs.at(0).get_double(i), 8 * inputs[0].get_double(i)) << "doubled three times, not 50";
}

/// A module whose first kernel does only a part of its blocks.
RunResult run_with_blocks_missing(const std::string& text, bool init) {
  const Graph graph = testing::graph_of(text);
  const Device& target = device("v100");
  Executable executable =
      compile(graph, target, make_plan(graph, target, "unfused"), testing::compile_options());
  std::vector<CompiledKernel>& kernels =
      executable.kernels.empty() ? executable.computations.at(0).kernels : executable.kernels;
  kernels.at(0).launch.grid = 1;
  RunOptions options;
  options.sanitize.init = init;
  return run_simulated(graph, target, executable, generate_inputs(graph, 0), options);
}

constexpr const char* kLarge =
    "HloModule m\nENTRY main {\n  p = f32[1048576] parameter(0)\n  ROOT t = f32[1048576] tanh(p)\n}\n";

TEST(HostReads, BytesThatNothingWroteAreAFindingWithTheInitSanitizer) {
  SKIP_WITHOUT_COMPILER();
  const RunResult checked = run_with_blocks_missing(kLarge, true);
  ASSERT_EQ(checked.findings.size(), 1u);
  EXPECT_EQ(checked.findings[0].kind, sim::FindingKind::kUninitialisedRead);
  EXPECT_EQ(checked.findings[0].kernel, "the host");
  EXPECT_THAT(checked.findings[0].message,
              ::testing::MatchesRegex("reads 4194304 bytes of t, of which byte [0-9]+ was never written"));
  EXPECT_THAT(checked.outputs, IsEmpty());
  EXPECT_THAT(run_with_blocks_missing(kLarge, false).findings, IsEmpty());
}

/// Of a library call's operand, of a loop's state, of what a copy copies.
TEST(HostReads, WhateverTheHostReadsForIsChecked) {
  SKIP_WITHOUT_COMPILER();
  const std::string head = "ENTRY main {\n  p = f32[1048576] parameter(0)\n  t = f32[1048576] tanh(p)\n";
  for (const std::string& text :
       {"HloModule m\nless {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT l = pred[] compare(a, b), direction=LT\n}\n" +
            head + "  ROOT s = f32[1048576] sort(t), dimensions={0}, to_apply=less\n}\n",
        "HloModule m\nbody {\n  ROOT s = (f32[1048576]) parameter(0)\n}\n"
        "cond {\n  s = (f32[1048576]) parameter(0)\n  ROOT l = pred[] constant(false)\n}\n" +
            head +
            "  u = (f32[1048576]) tuple(t)\n  w = (f32[1048576]) while(u), condition=cond, body=body\n"
            "  ROOT r = f32[1048576] get-tuple-element(w), index=0\n}\n",
        "HloModule m\n" + head + "  ROOT c = f32[1048576] copy(t)\n}\n"}) {
    const RunResult run = run_with_blocks_missing(text, true);
    ASSERT_EQ(run.findings.size(), 1u) << text;
    EXPECT_THAT(run.findings[0].message, ::testing::HasSubstr("was never written")) << text;
  }
}

TEST(HostReads, OfMemoryThatWasGivenBackAreRefused) {
  SimulatorBackend backend(device("v100"), sim::CacheMode::kCold, {}, 1);
  const DeviceAddress address = backend.allocate(16, "x", MemoryUse::kValue);
  std::vector<std::byte> bytes(16);
  backend.read(address, bytes);
  backend.release(address);
  EXPECT_THAT(testing::refusal([&] { backend.read(address, bytes); }),
              ::testing::HasSubstr("nothing is allocated there"));
}

/// For other programs' results: the texts as files of $STITCHWORK_WRITE_CONTROL_FLOW, seed_<n>.hlo.
TEST(ControlFlow, TextsOfRandomNestsAreWrittenWhereAsked) {
  const char* const folder = std::getenv("STITCHWORK_WRITE_CONTROL_FLOW");
  if (folder == nullptr) GTEST_SKIP() << "STITCHWORK_WRITE_CONTROL_FLOW names no folder";
  std::filesystem::create_directories(folder);
  const testing::FuzzRange range = testing::fuzz_range(0, 300);
  for (std::uint32_t seed = range.first; seed < range.end; ++seed)
    write_file(fmt::format("{}/seed_{}.hlo", folder, seed), testing::random_control_flow(seed, true));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
