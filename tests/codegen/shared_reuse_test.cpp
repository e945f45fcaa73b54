// Values that take over the shared memory of dead ones are right, and race nowhere.
#include <fmt/format.h>

#include "analysis/verify/verify.h"
#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

/// A chain of stored rows, each twice as long as the one before: only the next step reads it.
std::string chain(int rows, int cols) {
  std::string text = fmt::format(R"(HloModule chain
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  x = f32[{0},{1}] parameter(0)
  zero = f32[] constant(0)
  m = f32[{0}] reduce(x, zero), dimensions={{1}}, to_apply=sum
  wm = f32[{0},{1}] broadcast(m), dimensions={{0}}
  d = f32[{0},{1}] subtract(x, wm)
  e0 = f32[{0},{1}] exponential(d)
)",
                                 rows, cols);
  std::string dims = fmt::format("{},{}", rows, cols), kept = "0,1";
  for (int i = 1; i <= 4; ++i) {
    text += fmt::format("  w{0} = f32[{1},2] broadcast(e{2}), dimensions={{{3}}}\n", i, dims, i - 1, kept);
    dims += ",2";
    kept += fmt::format(",{}", i + 1);
    text +=
        fmt::format("  y{0} = f32[{1}] parameter({0})\n  p{0} = f32[{1}] multiply(w{0}, y{0})\n", i, dims);
    text += fmt::format("  {2}e{0} = f32[{1}] tanh(p{0})\n", i, dims, i == 4 ? "ROOT " : "");
  }
  return text + "}\n";
}

/// `s` is made when nothing reads `m` any more; both are one element a row.
std::string row_values(int rows, int cols) {
  return fmt::format(R"(HloModule row_values
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  x = f32[{0},{1}] parameter(0)
  zero = f32[] constant(0)
  m = f32[{0}] reduce(x, zero), dimensions={{1}}, to_apply=sum
  wm = f32[{0},{1}] broadcast(m), dimensions={{0}}
  d = f32[{0},{1}] subtract(x, wm)
  e = f32[{0},{1}] exponential(d)
  s = f32[{0}] reduce(e, zero), dimensions={{1}}, to_apply=sum
  we = f32[{0},{1},2] broadcast(e), dimensions={{0,1}}
  ws = f32[{0},{1},2] broadcast(s), dimensions={{0}}
  ROOT out = f32[{0},{1},2] divide(we, ws)
}}
)",
                     rows, cols);
}

bool overlap(const MemorySlot& a, const MemorySlot& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// Pairs of values that share bytes.
int shared_pairs(const KernelPlan& kernel) {
  int pairs = 0;
  for (std::size_t a = 0; a < kernel.shared.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) pairs += overlap(kernel.shared[a], kernel.shared[b]) ? 1 : 0;
  return pairs;
}

/// On so few blocks that each has several tasks one after the other.
void pack(KernelPlan& kernel, std::int64_t blocks) {
  for (Group& group : kernel.groups) group.deal.takers = std::min(blocks, group.deal.tasks);
  kernel.launch.grid = blocks;
}

void expect_correct_when_packed(const Graph& graph, const char* mapping) {
  PlanOptions options;
  options.knobs["mapping"] = mapping;
  FusionPlan plan = make_plan(graph, device("v100"), "astitch", options);
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_GT(shared_pairs(plan.kernels[0]), 0) << to_text(graph, plan);
  pack(plan.kernels[0], 3);
  const std::vector<Verdict> problems = verify(graph, device("v100"), plan);
  ASSERT_TRUE(problems.empty()) << problems[0].why;
  testing::expect_correct(graph, plan);
}

TEST(SharedReuse, IsRightAcrossTheTasksOfABlock) {
  SKIP_WITHOUT_COMPILER();
  for (const int cols : {8, 33, 96}) {
    SCOPED_TRACE(cols);
    expect_correct_when_packed(testing::graph_of(chain(100, cols)), "paper");
  }
}

TEST(SharedReuse, OfRowsOfAWarpOrLessIsRight) {
  SKIP_WITHOUT_COMPILER();
  for (const int cols : {5, 32, 100}) {
    SCOPED_TRACE(cols);
    expect_correct_when_packed(testing::graph_of(row_values(1000, cols)), "tuned");
  }
}

TEST(SharedReuse, FitsAKernelThatWouldOtherwiseGiveUpAValue) {
  const Graph graph = testing::graph_of(chain(2048, 1000));
  const auto barriers = [&](const char* reuse) {
    PlanOptions options;
    options.knobs = {{"shared_reuse", reuse}, {"mapping", "paper"}};
    return make_plan(graph, device("v100"), "astitch", options).kernels.at(0).launch.grid_barriers;
  };
  EXPECT_EQ(barriers("on"), 0);
  EXPECT_GT(barriers("off"), 0);
}

/// Sums over rows and over columns in turn, each of what the last one scales: five phases, of whose values
/// two at a time are needed.
std::string in_turn(int rows, int cols) {
  std::string text = fmt::format(
      "HloModule in_turn\nsum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) "
      "}}\n"
      "ENTRY main {{\n  x0 = f32[{},{}] parameter(0)\n  zero = f32[] constant(0)\n",
      rows, cols);
  for (int i = 0; i < 6; ++i) {
    const int reduced = i % 2 == 0 ? 1 : 0;
    text += fmt::format(
        "  r{0} = f32[{3}] reduce(x{0}, zero), dimensions={{{4}}}, to_apply=sum\n"
        "  w{0} = f32[{1},{2}] broadcast(r{0}), dimensions={{{5}}}\n  t{0} = f32[{1},{2}] tanh(w{0})\n"
        "  {6}x{7} = f32[{1},{2}] multiply(x0, t{0})\n",
        i, rows, cols, reduced == 1 ? rows : cols, reduced, 1 - reduced, i == 5 ? "ROOT " : "", i + 1);
  }
  return text + "}\n";
}

TEST(SharedReuse, GlobalValuesOfDifferentPhasesShareScratch) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(in_turn(300, 200));
  const auto plan = [&](const char* reuse, const char* mapping) {
    PlanOptions options;
    options.knobs = {{"shared_reuse", reuse}, {"mapping", mapping}, {"across_rows", "off"}};
    return make_plan(graph, device("v100"), "astitch", options);
  };
  EXPECT_EQ(plan("off", "paper").kernels.at(0).launch.scratch_bytes, 5808);
  FusionPlan shared = plan("on", "paper");
  EXPECT_EQ(shared.kernels.at(0).launch.scratch_bytes, 2080) << "two at a time, on 256-byte boundaries";
  testing::expect_correct(graph, shared);
  testing::expect_correct(graph, plan("on", "tuned"));

  std::vector<MemorySlot>& slots = shared.kernels[0].scratch;
  const auto slot = [&](const char* name) -> MemorySlot& {
    return *std::find_if(slots.begin(), slots.end(),
                         [&](const MemorySlot& s) { return s.op == testing::op(graph, name); });
  };
  slot("r1").offset = slot("r0").offset;
  const std::vector<Verdict> problems = verify(graph, device("v100"), shared);
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].why.find("r0 and r1 share scratch while both are needed"), std::string::npos)
      << problems[0].why;
}

TEST(SharedReuse, InitialValuesLiveUntilPartialsAreFolded) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(
      "HloModule initial\nmaximum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] "
      "maximum(a, b) }\n"
      "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
      "ENTRY main {\n  x = f32[1030] parameter(0)\n  one = f32[] constant(1)\n  y = f32[1030] parameter(1)\n"
      "  a = f32[] reduce(x, one), dimensions={0}, to_apply=maximum\n"
      "  b = f32[] reduce(y, a), dimensions={0}, to_apply=add\n  nb = f32[] negate(b)\n"
      "  w = f32[1030] broadcast(nb), dimensions={}\n  z = f32[1030] multiply(y, w)\n"
      "  c = f32[] reduce(z, nb), dimensions={0}, to_apply=add\n  wc = f32[1030] broadcast(c), "
      "dimensions={}\n"
      "  ROOT r = f32[1030] subtract(z, wc)\n}\n");
  for (const char* mapping : {"paper", "tuned"}) {
    PlanOptions options;
    options.knobs["mapping"] = mapping;
    testing::expect_correct(graph, make_plan(graph, device("v100"), "astitch", options));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
