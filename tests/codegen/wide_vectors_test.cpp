// Vectors of 32 bytes of global memory, which devices from sm_100 on load and store at a time.
#include <fmt/format.h>

#include <string>

#include "analysis/judge/cost.h"
#include "analysis/schedule/layout.h"
#include "analysis/verify/verify.h"
#include "core/base/arithmetic.h"
#include "tests/codegen/planned.h"
#include "tests/support/held_out.h"

namespace stitchwork {
namespace TEST_FILE {

/// Of four families whose kernels have their rows and elements in registers.
testing::HeldOut drawn(std::uint32_t seed) {
  constexpr std::string_view kFamilies[] = {"softmax", "layer_norm", "gelu", "adam"};
  testing::HeldOut of = testing::held_out(
      kFamilies[seed % 4], seed,
      {.least_rows = 1, .most_rows = 200, .least_cols = 8, .most_cols = 2048, .max_elements = 1 << 15});
  of.size.cols = round_up(of.size.cols, std::int64_t{16});
  return of;
}

/// Doubles what a thread has at a time in every group of whole vectors that has them in registers.
bool widen(KernelPlan& kernel) {
  bool widened = false;
  for (Group& group : kernel.groups) {
    Mapping wide = group.mapping;
    const mapping::Vectors before = vectors(wide);
    if (is_staged(wide) || is<mapping::Columns>(wide) || before.width == 1) continue;
    set_vectors(wide, {2 * before.width, std::max(1, before.unroll / 2)});
    const auto* elements = as<mapping::Elements>(wide);
    const std::int64_t whole = 2 * before.width;
    if (elements != nullptr ? elements->per_task % whole != 0 || elements->count % whole != 0
                            : extents(wide).cols % whole != 0)
      continue;
    if (!legal(wide, group.deal)) continue;
    group.mapping = wide;
    widened = true;
  }
  return widened;
}

bool moves_wide(const std::string& ptx) {
  return ptx.find("global.v8.") != std::string::npos || ptx.find("global.nc.v8.") != std::string::npos;
}

TEST(WideVectors, OfDrawnShapesAreRightUnderEverySanitizer) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("b200");
  int wide = 0;
  for (std::uint32_t seed = testing::kFirstTestSeed; seed < testing::kFirstTestSeed + 24; ++seed) {
    const testing::HeldOut of = drawn(seed);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, of.text()));
    const Graph graph = testing::held_out_graph(of);
    FusionPlan plan = make_plan(graph, target, "auto", {.knobs = {{"wide_vectors", "off"}}});
    bool widened = false;
    for (KernelPlan& kernel : plan.kernels) widened = widen(kernel) || widened;
    if (!widened || !verify(graph, target, plan).empty()) continue;
    for (const std::string& compiler : testing::installed_compilers()) {
      const testing::SanitizedRun made = testing::run_sanitized(graph, target, plan, compiler);
      if (compiler != "nvrtc") continue;
      for (const CompiledKernel& kernel : made.executable.kernels) wide += moves_wide(kernel.ptx);
    }
  }
  if (find_nvrtc()) {
    EXPECT_GE(wide, 8);
  }
}

Graph heavy(std::int64_t elements) {
  return testing::graph_of(fmt::format(R"(HloModule m
ENTRY main {{
  x = f32[{0}] parameter(0)
  t = f32[{0}] tanh(x)
  e = f32[{0}] exponential(t)
  l = f32[{0}] log(e)
  s = f32[{0}] sine(l)
  ROOT y = f32[{0}] multiply(x, s)
}}
)",
                                       elements));
}

int width(const Graph& graph, const char* on, const std::string& wide) {
  const FusionPlan plan = make_plan(graph, device(on), "auto", {.knobs = {{"wide_vectors", wide}}});
  return vectors(plan.kernels.at(0).groups.at(0).mapping).width;
}

TEST(WideVectors, AreTakenWhereTheyAreFasterAndAllowed) {
  const Graph graph = heavy(2697408);
  EXPECT_EQ(width(graph, "b200", "on"), 8);
  EXPECT_EQ(width(graph, "b200", "off"), 4);
  EXPECT_EQ(width(graph, "h200", "on"), 4);
}

TEST(WideVectors, AreRefusedWhereTheDeviceOrATileHasNone) {
  const Graph graph = heavy(1 << 16);
  KernelPlan kernel = testing::one_group(
      graph, {"y"}, Dealt{mapping::Elements{1 << 16, 1024, {8, 1}, std::nullopt}, Deal{64, 64}}, 128);
  const auto rules = [&](const char* on) {
    std::string text;
    const FusionPlan plan = assemble(graph, device(on), "test", {kernel});
    for (const Verdict& problem : verify(graph, device(on), plan))
      text += problem.rule + ": " + problem.why + "\n";
    return text;
  };
  EXPECT_EQ(rules("b200"), "");
  EXPECT_NE(rules("h200").find("mapping.vector"), std::string::npos) << rules("h200");
  EXPECT_NE(rules("h200").find("up to 16 bytes"), std::string::npos) << rules("h200");
  set_vectors(kernel.groups[0].mapping, {16, 1});
  EXPECT_NE(rules("b200").find("up to 32 bytes"), std::string::npos) << rules("b200");
}

TEST(WideVectors, EstimatesOfThemAreNearSimulatedTimes) {
  SKIP_WITHOUT_COMPILER();
  if (!find_nvrtc()) return;  // clang writes two accesses for each
  const Device& target = device("b200");
  const testing::Extents large{1 << 10, 1 << 11, 256, 1024, 1 << 20};
  for (std::uint32_t seed = testing::kFirstTestSeed; seed < testing::kFirstTestSeed + 8; ++seed) {
    testing::HeldOut of = testing::held_out(seed % 2 == 0 ? "softmax" : "gelu", seed, large);
    of.size.cols = round_up(of.size.cols, std::int64_t{16});
    const Graph graph = testing::held_out_graph(of);
    FusionPlan plan = make_plan(graph, target, "auto", {.knobs = {{"wide_vectors", "off"}}});
    KernelPlan& kernel = plan.kernels.at(0);
    if (plan.kernels.size() > 1 || !widen(kernel) || !verify(graph, target, plan).empty()) continue;
    const double simulated =
        testing::run_sanitized(graph, target, plan).run.kernels[0].time_us - target.launch_us;
    const double modelled = kernel_cost(graph, target, kernel).predicted_us - target.launch_us;
    EXPECT_GT(modelled / simulated, 0.8) << of.text();
    EXPECT_LT(modelled / simulated, 1.25) << of.text();
  }
}

/// A slice that begins between multiples of 32 bytes.
TEST(WideVectors, WhatIsNotAlignedToThemMovesOtherwise) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("b200");
  for (const int first : {0, 4, 8}) {
    const Graph graph = testing::graph_of(fmt::format(R"(HloModule m
ENTRY main {{
  x = f32[64,1040] parameter(0)
  a = f32[64,1024] slice(x), slice={{[0:64], [{0}:{1}]}}
  ROOT y = f32[64,1024] negate(a)
}}
)",
                                                      first, first + 1024));
    KernelPlan kernel = testing::one_group(
        graph, {"y"}, Dealt{mapping::Elements{1 << 16, 1024, {8, 1}, std::nullopt}, Deal{64, 64}}, 128);
    const FusionPlan plan = assemble(graph, target, "test", {kernel});
    const testing::SanitizedRun made = testing::run_sanitized(graph, target, plan);
    const std::string& ptx = made.executable.kernels.at(0).ptx;
    if (!find_nvrtc()) continue;
    EXPECT_EQ(ptx.find("ld.global.nc.v8.") != std::string::npos, first % 8 == 0) << ptx;
    EXPECT_NE(ptx.find("st.global.v8."), std::string::npos) << ptx;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
