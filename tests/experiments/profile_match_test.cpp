#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planners/planner.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "experiments/peer_trial.h"
#include "experiments/profile/kernel_names.h"
#include "experiments/profile/match.h"
#include "experiments/profile/profile_text.h"
#include "tests/experiments/sample_trial.h"
#include "tests/support/profile_files.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MadeLaunch;

std::vector<const ProfileEvent*> pointers(const std::vector<ProfileEvent>& events) {
  std::vector<const ProfileEvent*> list;
  for (const ProfileEvent& e : events) list.push_back(&e);
  return list;
}

/// A kernel a letter, one us each, one us apart.
std::vector<ProfileEvent> letters(const std::string& text) {
  std::vector<ProfileEvent> events;
  for (const char c : text) {
    ProfileEvent& e = events.emplace_back();
    e.kernel = c;
    e.start_us = 2.0 * static_cast<double>(events.size());
    e.us = 1;
  }
  return events;
}

std::string found_in(const std::string& text, IterationOptions options = {}) {
  const std::vector<ProfileEvent> events = letters(text);
  const ProfileIterations found = find_iterations(pointers(events), options, "p");
  std::string launches = std::to_string(found.iterations) + " ";
  for (const ProfileLaunch& l : found.launches) launches += l.kernel;
  return launches + " " + std::to_string(found.left_out);
}

TEST(ProfileIterations, TheLongestStretchThatRepeatsIsFound) {
  EXPECT_EQ(found_in("abcabcabc"), "3 abc 0");
  EXPECT_EQ(found_in("xyxabcdabcdabcd"), "3 abcd 3") << "warm-up before";
  EXPECT_EQ(found_in("abcdabcdabcdxyz"), "3 abcd 3") << "something else behind";
  EXPECT_EQ(found_in("aabaabaab"), "3 aab 0") << "a name twice in an iteration";
  EXPECT_EQ(found_in("pllllllqpllllllqpllllllq"), "3 pllllllq 0")
      << "layers within iterations are no iterations";
  EXPECT_EQ(found_in("abcdef"), "1 abcdef 0");
  EXPECT_EQ(found_in("abccdefgh"), "1 abccdefgh 0") << "two of a name are no iterations";
}

TEST(ProfileIterations, WhatIsKnownOfTheirNumberIsKept) {
  EXPECT_EQ(found_in("pllllllq", {.most = 1}), "1 pllllllq 0")
      << "a loop runs several times in one iteration";
  EXPECT_EQ(found_in("abababab", {.given = 4}), "4 ab 0");
  EXPECT_EQ(found_in("abababab", {.given = 2}), "2 abab 0");
  EXPECT_EQ(found_in("abababab", {.given = 1}), "1 abababab 0");
  EXPECT_EQ(found_in("abcbca", {.most = 2}), "2 abc 0") << "another order in each";
  try {
    found_in("abcdef", {.given = 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no kernels come 3 times in the same order"));
  }
}

TEST(ProfileIterations, APauseSaysWhereOneBegins) {
  std::vector<ProfileEvent> events = letters("xbcabcabcabcay");
  for (std::size_t i = 0; i < events.size(); ++i)
    if (events[i].kernel == "a")
      for (std::size_t later = i; later < events.size(); ++later) events[later].start_us += 100;
  const ProfileIterations found = find_iterations(pointers(events), {}, "p");
  ASSERT_EQ(found.launches.size(), 3U);
  EXPECT_EQ(found.launches[0].kernel, "a");
}

TEST(ProfileIterations, StepsOfTheProgramItselfComeFirst) {
  EXPECT_EQ(found_in("wababab", {.steps = {{3, 7}, {7, 11}}}), "2 ab 3");
}

TEST(ProfileIterations, TimesAreMeansOverThem) {
  std::vector<ProfileEvent> events = letters("ababab");
  events[0].us = 1, events[2].us = 2, events[4].us = 6;
  events[4].counters["registers"] = 30;
  const ProfileIterations found = find_iterations(pointers(events), {}, "p");
  EXPECT_DOUBLE_EQ(found.launches[0].mean_us, 3);
  EXPECT_DOUBLE_EQ(found.launches[0].least_us, 1);
  EXPECT_DOUBLE_EQ(found.launches[0].most_us, 6);
  EXPECT_EQ(found.launches[0].samples, 3);
  EXPECT_EQ(found.launches[0].counters.at("registers"), 10);
}

/// A model with its plan, and a profile held to it.
struct Held {
  Model model;
  OpTrace trace;
  FusionPlan plan;

  explicit Held(const std::string& name, const std::string& planner = "imported") {
    model = load_model(name, {}, &trace);
    plan = make_plan(model.graph, device("a100-sxm-40"), planner, {});
  }
  ProfileComparison compare(const Profile& profile) const {
    return compare_profile(profile, model, trace, plan);
  }
};

std::string after_hlo(const std::string& dump) {
  return std::string(STITCHWORK_SOURCE_DIR) + "/tests/data/dumps/" + dump + "/after.hlo";
}

std::vector<std::string> rules_of(const ProfileComparison& c) {
  std::vector<std::string> list;
  for (const ProfileMatch& m : c.matches)
    list.push_back(m.stands_for.name + " by " + std::string(name(m.rule)));
  return list;
}

Profile jax(const std::vector<MadeLaunch>& program, int times, const std::string& module) {
  return parse_chrome_trace(testing::jax_trace(program, times, module).dump(), "trace.json");
}

/// XLA's kernels of Figure 7 as XLA names them (tests/data/dumps/fig7-a100).
const std::vector<MadeLaunch> kFig7 = {{"input_reduce_fusion", "input_reduce_fusion", 9},
                                       {"loop_power_fusion", "loop_power_fusion", 2},
                                       {"input_reduce_fusion_1", "input_reduce_fusion.1", 5},
                                       {"loop_multiply_fusion", "loop_multiply_fusion", 4}};

TEST(ProfileMatch, InstructionsOfACompiledModuleAreItsFusions) {
  const Held held(after_hlo("fig7-a100"));
  const ProfileComparison c = held.compare(jax(kFig7, 4, held.model.graph.name));
  EXPECT_EQ(c.iterations.iterations, 4);
  EXPECT_THAT(rules_of(c),
              ElementsAre("input_reduce_fusion by instruction", "loop_power_fusion by instruction",
                          "input_reduce_fusion.1 by instruction", "loop_multiply_fusion by instruction"));
  EXPECT_THAT(c.missing, IsEmpty());
  EXPECT_THAT(c.duplicated, IsEmpty());
  ASSERT_EQ(c.steps.size(), 4U);
  EXPECT_DOUBLE_EQ(*c.steps[0].imported_us, 9 + (0 + 1 + 2 + 0) / 4.0);
  EXPECT_GT(c.steps[0].predicted_us, 0);
  EXPECT_DOUBLE_EQ(c.matched_us, c.total_us);
}

TEST(ProfileMatch, KernelsWithoutInstructionsAreXlasByTheirNames) {
  const Held held(after_hlo("fig7-a100"));
  std::vector<MadeLaunch> program = kFig7;
  for (MadeLaunch& launch : program) launch.instruction = "";
  program[2].kernel = "input_reduce_fusion_1__1";  // the second kernel of an instruction
  const std::string path = testing::test_folder() + "/nsys.sqlite";
  testing::write_nsys(path, program, 3, "");
  const ProfileComparison c = held.compare(read_profile(path));
  EXPECT_THAT(rules_of(c),
              ElementsAre("input_reduce_fusion by kernel name", "loop_power_fusion by kernel name",
                          "input_reduce_fusion.1 by kernel name", "loop_multiply_fusion by kernel name"));
  EXPECT_EQ(c.iterations.iterations, 3);
}

TEST(ProfileMatch, AnotherPlanHasTheSameOpsInStepsOfItsOwn) {
  const Held held(after_hlo("fig7-a100"), "astitch");
  const ProfileComparison c = held.compare(jax(kFig7, 2, held.model.graph.name));
  ASSERT_EQ(held.plan.kernels.size(), 1U) << "AStitch stitches all of it";
  EXPECT_EQ(c.steps[0].launches.size(), 4U);
  EXPECT_DOUBLE_EQ(*c.steps[0].imported_us, 9 + 2 + 5 + 4 + 4 * 0.5) << "one kernel in the place of four";
}

TEST(ProfileMatch, WhatIsUnknownRenamedDuplicatedOrMissingIsNamed) {
  const Held held(after_hlo("fig7-a100"));
  std::vector<MadeLaunch> program = kFig7;
  program[1] = {"somebodys_kernel", "", 3};
  program[2] = {"input_reduce_fusion_7", "input_reduce_fusion.7", 5};
  program.push_back({"loop_multiply_fusion__1", "loop_multiply_fusion", 1});
  const ProfileComparison c = held.compare(jax(program, 2, held.model.graph.name));
  EXPECT_THAT(rules_of(c),
              ElementsAre("input_reduce_fusion by instruction", " by ", "input_reduce_fusion.1 by renumbered",
                          "loop_multiply_fusion by instruction", "loop_multiply_fusion by instruction"));
  EXPECT_THAT(c.matches[1].why, HasSubstr("nothing of the model or plan is called so"));
  ASSERT_EQ(c.duplicated.size(), 1U);
  EXPECT_EQ(c.duplicated[0].first, "loop_multiply_fusion");
  EXPECT_THAT(c.duplicated[0].second, ElementsAre(3, 4));
  ASSERT_EQ(c.missing.size(), 1U);
  const std::string findings = profile_findings(c, held.plan);
  EXPECT_THAT(findings, HasSubstr("somebodys_kernel: nothing of the model"));
  EXPECT_THAT(findings, HasSubstr("several launches stand for one:\n  loop_multiply_fusion: launches 3, 4"));
  EXPECT_THAT(findings, HasSubstr("steps of the plan that no launch stands for:\n  k1 power"));
  program[3] = {"input_reduce_fusion_8", "input_reduce_fusion.8", 5};
  const ProfileComparison two = held.compare(jax(program, 2, held.model.graph.name));
  EXPECT_EQ(two.matches[2].rule, ProfileRule::kNone) << "two of that name, the model has one left";
  EXPECT_THAT(two.matches[2].why, HasSubstr("renamed? it has input_reduce_fusion.1"));
}

TEST(ProfileMatch, OtherModulesAreLeftOutByName) {
  const Held held(after_hlo("fig7-a100"));
  Profile profile = jax(kFig7, 2, held.model.graph.name);
  Profile other = jax({{"convert", "loop_convert_fusion", 1}}, 5, "jit_convert");
  profile.events.insert(profile.events.begin(), other.events.begin(), other.events.end());
  const ProfileComparison c = held.compare(profile);
  EXPECT_EQ(c.module, held.model.graph.name);
  EXPECT_THAT(c.other_modules, ElementsAre(std::pair("jit_convert", 5U)));
  EXPECT_EQ(c.matched, 4U);
}

TEST(ProfileMatch, ProductsOfLibrariesAreInOrderIfTheyAreAsMany) {
  const Held held(after_hlo("mlp-a100"));
  const std::vector<MadeLaunch> program = {
      {"ampere_sgemm_64x32_sliced1x4_nn", "", 7},
      {"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64>(Params)", "", 8},
      {"void cublasLt::splitKreduce_kernel<32, 16>(int)", "", 1},
      {"loop_add_fusion", "", 2}};
  const std::string path = testing::test_folder() + "/nsys.sqlite";
  testing::write_nsys(path, program, 6, "");
  const ProfileComparison c = held.compare(read_profile(path));
  EXPECT_EQ(c.iterations.iterations, 6);
  EXPECT_THAT(rules_of(c),
              ElementsAre("cublas-lt-matmul.3 by product order", "cublas-lt-matmul.4 by product order",
                          "cublas-lt-matmul.4 by product order", "loop_add_fusion by kernel name"));
  testing::write_nsys(path, {program[0], program[3]}, 6, "");
  const ProfileComparison fewer = held.compare(read_profile(path));
  EXPECT_EQ(fewer.matches[0].rule, ProfileRule::kNone);
  EXPECT_THAT(fewer.matches[0].why,
              HasSubstr("one of 1 matrix product of a library an iteration, the model has 2"));
}

TEST(ProfileMatch, ProductsTellOneIterationFromLayers) {
  Held held("bert_tiny", "xla");
  std::size_t dots = 0;
  for (const Node& node : held.model.graph.entry_computation().nodes) dots += node.op == Op::kDot ? 1U : 0U;
  ASSERT_GT(dots, 2U);
  std::vector<MadeLaunch> program;
  for (std::size_t i = 0; i < dots; ++i) program.push_back({"sgemm_nn", "", 3});
  const ProfileComparison c =
      held.compare(parse_chrome_trace(testing::torch_trace(program, 1).dump(), "trace.json"));
  EXPECT_EQ(c.iterations.iterations, 1) << "all alike, and as many as the model has";
  EXPECT_EQ(c.matched, dots);
  const ProfileComparison four =
      held.compare(parse_chrome_trace(testing::torch_trace(program, 4).dump(), "trace.json"));
  EXPECT_EQ(four.iterations.iterations, 4);
}

TEST(ProfileMatch, OurOwnKernelsAreKnownByNameAndLaunch) {
  const Held held("fig7", "xla");
  std::vector<MadeLaunch> program, canonical;
  for (const KernelPlan& k : held.plan.kernels) {
    program.push_back(
        {k.name + "(float const*, float*)", "", 3, static_cast<int>(k.launch.grid), k.launch.block});
    canonical.push_back({"k", "", 3, static_cast<int>(k.launch.grid), k.launch.block});
  }
  const auto of = [&](const std::vector<MadeLaunch>& launches) {
    const std::string path = testing::test_folder() + "/ncu.csv";
    write_file(path, testing::ncu_details(launches));
    return held.compare(read_profile(path));
  };
  const ProfileComparison named = of(program), ours = of(canonical);
  for (std::size_t i = 0; i < program.size(); ++i) {
    EXPECT_EQ(named.matches[i].rule, ProfileRule::kOwnKernel);
    EXPECT_EQ(ours.matches[i].rule, ProfileRule::kLaunchOrder);
    EXPECT_THAT(ours.matches[i].steps, ElementsAre(static_cast<int>(i)));
  }
  EXPECT_THAT(named.missing, IsEmpty());
  EXPECT_EQ(named.steps[0].counters.at("registers"), 64);
  canonical[0].block *= 2;
  const ProfileComparison other = of(canonical);
  EXPECT_EQ(other.matches[0].rule, ProfileRule::kNone);
  EXPECT_THAT(other.matches[0].why, HasSubstr("launches are not this plan's"));
}

TEST(KernelNames, InductorsHaveKindWordsAndNumber) {
  const auto parts = [](std::string_view kernel) {
    const auto called = inductor_name(kernel);
    return called ? fmt::format("{}|{}|{}", called->kind, called->words, called->number) : "none";
  };
  EXPECT_EQ(parts("triton_red_fused_add_div_pow_12"), "red|add_div_pow|12");
  EXPECT_EQ(parts("triton_poi_fused__softmax_0"), "poi|_softmax|0");
  EXPECT_EQ(parts("triton_per_fused_3"), "per||3");
  for (const std::string_view other :
       {"triton_softmax_2", "triton_per_fused_", "triton_per_fused_add", "triton__fused_1",
        "triton_a_b_fused_1", "loop_add_fusion_3", "triton_poi_fused_add_99999999999", ""})
    EXPECT_EQ(parts(other), "none") << other;
}

/// A dump of Inductor's, and a run of the same module elsewhere: words in its names, other blocks.
TEST(ProfileMatch, KernelsOfInductorAreItsDumpsByKindAndNumber) {
  Held held("fig7", "xla");
  held.plan =
      load_peer(std::string(STITCHWORK_SOURCE_DIR) + "/tests/data/dumps/fig7-inductor-a100", held.model).plan;
  const auto compare = [&](const std::vector<MadeLaunch>& program) {
    return held.compare(parse_chrome_trace(testing::torch_trace(program, 4).dump(), "trace.json"));
  };
  const MadeLaunch sums{"triton_per_fused_sum_0", "", 9, 512, 64},
      rest{"triton_red_fused_add_pow_1", "", 15, 64, 256};
  const ProfileComparison c = compare({sums, rest});
  EXPECT_THAT(rules_of(c),
              ElementsAre("triton_per_fused_0 by inductor number", "triton_red_fused_1 by inductor number"));
  EXPECT_THAT(c.missing, IsEmpty());
  EXPECT_DOUBLE_EQ(*c.steps[1].imported_us, 15 + (0 + 1 + 2 + 0) / 4.0);

  MadeLaunch otherwise = rest;
  otherwise.kernel = "triton_poi_fused_add_pow_1";
  for (const std::vector<MadeLaunch>& program :
       {std::vector{sums, otherwise}, std::vector{sums},
        std::vector{sums, rest, MadeLaunch{"triton_poi_fused_add_2", "", 1}},
        // Two modules: each numbers its own.
        std::vector{sums, rest, MadeLaunch{"triton_poi_fused_mul_1", "", 1}},
        std::vector{sums, rest, MadeLaunch{"triton_red_fused_mean_1", "", 1}}})
    for (const ProfileMatch& m : compare(program).matches) {
      EXPECT_EQ(m.rule, ProfileRule::kNone) << "another module: numbers say nothing";
      EXPECT_THAT(m.why, HasSubstr("the dump's differ in number or kind"));
    }
  const Held without("fig7", "xla");
  EXPECT_THAT(
      without.compare(parse_chrome_trace(testing::torch_trace({sums}, 2).dump(), "t.json")).matches[0].why,
      HasSubstr("--plan DUMP"));
}

TEST(ProfileMatch, WhatALoopRunsIsOfItsBody) {
  const std::string path = testing::test_folder() + "/loop.hlo";
  write_file(path, R"(HloModule jit_loop
cond { c = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(5)  ROOT lt = pred[] compare(i, n), direction=LT }
body { b = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(b), index=0
  v = f32[64] get-tuple-element(b), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  w = f32[64] tanh(v)  ROOT t = (s32[], f32[64]) tuple(j, w) }
ENTRY main { x = f32[64] parameter(0)  zero = s32[] constant(0) e = f32[64] exponential(x)
  t = (s32[], f32[64]) tuple(zero, e)
  loop = (s32[], f32[64]) while(t), condition=cond, body=body
  r = f32[64] get-tuple-element(loop), index=1 ROOT l = f32[64] logistic(r) })");
  const Held held(path, "xla");
  std::vector<MadeLaunch> program = {{"e", "e", 2}};
  for (int i = 0; i < 5; ++i) program.push_back({"w", "w", 4.0 + i});
  program.push_back({"l", "l", 3});
  const ProfileComparison one = held.compare(jax(program, 1, "jit_loop"));
  EXPECT_EQ(one.iterations.iterations, 1) << "the loop's five runs are of one iteration";
  EXPECT_EQ(one.matched, 7U);
  const auto of_body =
      std::ranges::find_if(one.steps, [](const ProfiledStep& s) { return s.body >= 0 && s.imported_us; });
  ASSERT_NE(of_body, one.steps.end());
  EXPECT_DOUBLE_EQ(*of_body->imported_us, 6) << "mean of its runs";
  EXPECT_THAT(one.duplicated, IsEmpty());
  EXPECT_EQ(held.compare(jax(program, 3, "jit_loop")).iterations.iterations, 3);
}

TEST(ProfileMatch, OpsOfTheFrameworkStandForWhatHasTheirName) {
  const std::string path = testing::test_folder() + "/named.hlo";
  write_file(path, R"(HloModule jit_f
ENTRY main { x = f32[64] parameter(0)
  ROOT t = f32[64] tanh(x), metadata={op_name="jit(f)/jit(main)/tanh"} })");
  const Held held(path, "xla");
  const ProfileComparison c =
      held.compare(jax({{"wrapped_tanh", "wrapped_tanh", 2, 1, 32, "jit(f)/jit(main)/tanh"}}, 2, "jit_f"));
  EXPECT_THAT(rules_of(c), ElementsAre("jit(f)/jit(main)/tanh by op name"));
  EXPECT_DOUBLE_EQ(*c.steps[0].imported_us, 2.5);
}

TEST(ProfileMatch, AHundredThousandEventsAreRead) {
  const Held held(after_hlo("fig7-a100"));
  const ProfileComparison c = held.compare(jax(kFig7, 25000, held.model.graph.name));
  EXPECT_EQ(c.iterations.iterations, 25000);
  EXPECT_EQ(c.iterations.launches.size(), 4U);
  EXPECT_EQ(c.matched, 4U);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
