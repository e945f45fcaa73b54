// Chains of ops as long as a graph can be: nothing on the way to CUDA C++ takes a stack frame an op, and no
// function becomes so long that compilers do not finish.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "codegen/kernel.h"
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

Graph chain_of(int ops) {
  std::string text = "HloModule m\nENTRY main {\nx = f32[64] parameter(0)\nv0 = f32[64] negate(x)\n";
  for (int i = 1; i < ops; ++i)
    text += i % 2 != 0 ? fmt::format("v{} = f32[64] add(v{}, x)\n", i, i - 1)
                       : fmt::format("v{} = f32[64] abs(v{})\n", i, i - 1);
  return testing::graph_of(text + fmt::format("ROOT r = f32[64] negate(v{})\n}}\n", ops - 1));
}

class LongChain : public ::testing::TestWithParam<const char*> {};

TEST_P(LongChain, IsPrinted) {
  const Graph graph = chain_of(20000);
  const FusionPlan plan = make_plan(graph, device("v100"), GetParam());
  std::size_t additions = 0;
  for (const KernelPlan& kernel : plan.kernels) {
    const std::string text = to_cuda(graph, build_schedule(graph, kernel), true);
    for (std::size_t at = 0; (at = text.find(" + ", at)) != std::string::npos; ++at) ++additions;
  }
  EXPECT_GE(additions, 10000u);
}

INSTANTIATE_TEST_SUITE_P(Planners, LongChain, ::testing::Values("xla", "tvm"));

/// Element-wise ops of all types, each about the values made shortly before it: a run with many values alive
/// at every place. Results of several types, one reduced.
std::string drawn_run(std::uint32_t seed, int ops) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return random() % n; };
  std::string text =
      "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
      "ENTRY main {\nx = f32[6,128] parameter(0)\nn = s32[6,128] parameter(1)\n"
      "w = f32[128] parameter(2)\nwb = f32[6,128] broadcast(w), dimensions={1}\n"
      "xs = f32[6,128] tanh(x)\nx0 = pred[6,128] compare(x, wb), direction=LT\nh = bf16[6,128] convert(x)\n";
  std::map<std::string, std::vector<std::string>> values = {
      {"f32", {"xs", "wb"}}, {"s32", {"n"}}, {"pred", {"x0"}}, {"bf16", {"h"}}};
  const auto recent = [&](const std::string& type) {
    const std::vector<std::string>& made = values[type];
    return made[made.size() - 1 - below(std::min<std::size_t>(made.size(), 6))];
  };
  const auto make = [&](int i, const std::string& type, const std::string& expression) {
    values[type].push_back(fmt::format("v{}", i));
    text += fmt::format("v{} = {}[6,128] {}\n", i, type, expression);
  };
  for (int i = 0; i < ops; ++i) {
    const std::string a = recent("f32"), b = recent("f32");
    switch (below(9)) {
      case 0:
        make(i, "f32", fmt::format("sine({})", a));
        break;
      case 1:
        make(i, "f32", fmt::format("maximum({}, {})", a, b));
        break;
      case 2:
        make(i, "pred", fmt::format("compare({}, {}), direction=GT", recent("s32"), recent("s32")));
        break;
      case 3:
        make(i, "s32", fmt::format("xor({}, {})", recent("s32"), recent("s32")));
        break;
      case 4:
        make(i, "s32", fmt::format("add({}, {})", recent("s32"), recent("s32")));
        break;
      case 5:
        make(i, "bf16", fmt::format("negate({})", recent("bf16")));
        break;
      case 6:
        make(i, "f32", fmt::format("convert({})", recent("bf16")));
        break;
      case 7:
        make(i, "pred", fmt::format("and({}, {})", recent("pred"), recent("pred")));
        break;
      default:
        make(i, "f32", fmt::format("select({}, {}, {})", recent("pred"), a, b));
    }
  }
  text += fmt::format("z = f32[] constant(0)\nr = f32[6] reduce({}, z), dimensions={{1}}, to_apply=add\n",
                      values["f32"].back());
  return text +
         fmt::format("ROOT t = (f32[6], s32[6,128], bf16[6,128], f32[6,128]) tuple(r, {}, {}, {})\n}}\n",
                     values["s32"].back(), values["bf16"].back(), values["f32"][values["f32"].size() - 2]);
}

/// Lines of the longest function of CUDA C++.
std::size_t longest_function(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0, length = 0;
  for (std::string line; std::getline(lines, line);) {
    length = line.find("(") != std::string::npos && line[0] != ' ' ? 0 : length + 1;
    longest = std::max(longest, length);
  }
  return longest;
}

class LongRun : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(LongRun, IsCompiledInPartsAndRight) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(drawn_run(GetParam(), 9000));
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  std::size_t most_ops = 0, longest = 0;
  for (const KernelPlan& kernel : plan.kernels) {
    most_ops = std::max(most_ops, kernel.ops.size());
    longest = std::max(longest, longest_function(to_cuda(graph, build_schedule(graph, kernel), true)));
  }
  EXPECT_GE(most_ops, 1400u) << "one kernel has most of those that results need";
  EXPECT_LE(longest, 600u);
  testing::expect_correct(graph, plan);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LongRun, ::testing::Range(0u, 3u));

// An op of many instructions would be inlined at each of its uses: 2,000 sines are 130,000 lines of PTX.
TEST(LongRun, OpsOfManyInstructionsAreFunctions) {
  SKIP_WITHOUT_COMPILER();
  std::string text = "HloModule m\nENTRY main {\nx = f32[64] parameter(0)\nv0 = f32[64] negate(x)\n";
  for (int i = 1; i < 4000; ++i)
    text += i % 2 != 0 ? fmt::format("v{} = f32[64] sine(v{})\n", i, i - 1)
                       : fmt::format("v{} = f32[64] add(v{}, x)\n", i, i - 1);
  const Graph graph = testing::graph_of(text + "ROOT r = f32[64] negate(v3999)\n}\n");
  const FusionPlan plan = make_plan(graph, device("v100"), "xla");
  ASSERT_EQ(plan.kernels.size(), 1u);
  CompileOptions options;
  EXPECT_LT(compile(graph, device("v100"), plan, options).kernels[0].ptx.size(), std::size_t{1} << 20);
  testing::expect_correct(graph, plan);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
