// Groups equal up to buffers and sizes share one body, which computes each of them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>

#include "codegen/table.h"
#include "tests/codegen/planned.h"
#include "tests/support/equal_groups.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;

/// Loops that share a body, of all phases: the number of entries of each.
std::vector<std::size_t> shared_loops(const Schedule& kernel) {
  std::vector<std::size_t> entries;
  for (const Phase& phase : kernel.phases)
    for (const TaskLoop& loop : phase.loops)
      if (!loop.entries.empty()) entries.push_back(loop.entries.size());
  return entries;
}

std::size_t loops(const Schedule& kernel) {
  std::size_t count = 0;
  for (const Phase& phase : kernel.phases) count += phase.loops.size();
  return count;
}

/// One kernel of a graph under both mappings.
std::vector<FusionPlan> plans(const Graph& graph, const char* tiles = "on") {
  std::vector<FusionPlan> result;
  for (const char* mapping : {"paper", "tuned"})
    result.push_back(
        make_plan(graph, device("v100"), "astitch", {.knobs = {{"mapping", mapping}, {"tiles", tiles}}}));
  return result;
}

TEST(ShareBodies, UpdatesOfTensorsOfAllSizesAreRight) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = graph_of(testing::optimiser_hlo(
      {{1}, {3}, {31}, {33}, {1024}, {4097}, {2, 3, 5}, {64, 64}, {100, 100}, {7}, {1, 1}, {2048}}));
  for (const FusionPlan& plan : plans(graph)) {
    ASSERT_EQ(plan.kernels.size(), 1u);
    EXPECT_FALSE(shared_loops(build_schedule(graph, plan.kernels[0])).empty());
    testing::expect_correct(graph, plan);
  }
}

TEST(ShareBodies, SoftmaxesOfSeveralRowCountsAreRight) {
  SKIP_WITHOUT_COMPILER();
  for (const std::int64_t cols : {8, 33, 100, 3000}) {
    const Graph graph = graph_of(testing::softmaxes_hlo({1, 3, 31, 33, 200, 64}, cols));
    for (const FusionPlan& plan : plans(graph)) {
      SCOPED_TRACE(fmt::format("{} columns", cols));
      testing::expect_correct(graph, plan);
    }
  }
}

TEST(ShareBodies, EqualLoopsAreOneHoweverTheirShapesAreWritten) {
  const Graph graph =
      graph_of(testing::optimiser_hlo({{9600}, {80, 120}, {40, 60, 4}, {120, 80}, {9600, 1}, {20, 480}}));
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  const Schedule kernel = build_schedule(graph, plan.kernels.at(0));
  // In both phases, the first of which has the scalar's loop besides.
  ASSERT_THAT(shared_loops(kernel), ::testing::ElementsAre(6u, 6u));
  EXPECT_EQ(loops(kernel), shared_loops(kernel).size() + 1);
}

/// Tensors of 64 elements, and one of more blocks than one: the scalar they wait for crosses a grid barrier.
Graph small_tensors(std::size_t count) {
  std::vector<std::vector<std::int64_t>> dims(count, {64});
  dims.push_back({9000});
  return graph_of(testing::optimiser_hlo(dims));
}

TEST(ShareBodies, ABodyIsPrintedOnceForAnyNumberOfGroups) {
  const auto source = [](std::size_t tensors) {
    const Graph graph = small_tensors(tensors);
    const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
    EXPECT_EQ(plan.kernels.size(), 1u);
    return to_cuda(graph, build_schedule(graph, plan.kernels.at(0)), true);
  };
  EXPECT_NEAR(static_cast<double>(source(6).size()), static_cast<double>(source(24).size()), 64);
}

TEST(ShareBodies, AConstantAnOperatorAndATypeMakeADifference) {
  std::string text = "HloModule m\nENTRY main {\n";
  const char* kinds[] = {"multiply(x, c)", "multiply(x, d)", "add(x, c)", "maximum(x, c)"};
  for (int i = 0; i < 16; ++i) {
    std::string body = kinds[i % 4];
    for (std::size_t at = body.find('x'); at != std::string::npos; at = body.find('x', at + 2))
      if (body[at + 1] == ',') body.insert(at + 1, std::to_string(i));
    body.insert(body.find(')'), std::to_string(i));
    text += fmt::format(
        "  x{0} = f32[64] parameter({0})\n  v{0} = f32[] constant(2)\n  u{0} = f32[] constant(3)\n"
        "  c{0} = f32[64] broadcast(v{0}), dimensions={{}}\n  d{0} = f32[64] broadcast(u{0}), "
        "dimensions={{}}\n"
        "  y{0} = f32[64] {1}\n",
        i, body);
  }
  text += "  ROOT t = (";
  for (int i = 0; i < 16; ++i) text += i ? ", f32[64]" : "f32[64]";
  text += ") tuple(";
  for (int i = 0; i < 16; ++i) text += fmt::format("{}y{}", i ? ", " : "", i);
  const Graph graph = graph_of(text + ")\n}\n");
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_THAT(shared_loops(build_schedule(graph, plan.kernels[0])), ::testing::ElementsAre(4u, 4u, 4u, 4u));
}

TEST(ShareBodies, FewLoopsKeepTheirBodies) {
  const Graph graph = graph_of(testing::optimiser_hlo({{64}, {64}, {64}}));
  const Schedule kernel = build_schedule(graph, make_plan(graph, device("v100"), "astitch").kernels.at(0));
  EXPECT_THAT(shared_loops(kernel), ::testing::IsEmpty());
  EXPECT_TRUE(kernel_table(kernel).bytes.empty());
}

TEST(ShareBodies, EveryBlockStartsWithAnEntryOfItsOwn) {
  const Graph graph = graph_of(testing::optimiser_hlo({{9000}, {64}, {20000}, {64}, {128}, {4000}}));
  for (const FusionPlan& plan : plans(graph)) {
    const Schedule kernel = build_schedule(graph, plan.kernels.at(0));
    const KernelTable table = kernel_table(kernel);
    std::size_t next = 0;
    for (const Phase& phase : kernel.phases)
      for (const TaskLoop& loop : phase.loops) {
        if (loop.entries.empty()) continue;
        const LoopTable& layout = table.loops.at(next++);
        for (std::int64_t block = 0; block < kernel.launch.grid; ++block) {
          std::int32_t first = 0;
          std::memcpy(&first, table.bytes.data() + layout.first_entries + block * 4, sizeof first);
          const auto runs = [&](const LoopEntry& entry) {
            return entry.deal.first_block <= block && block < entry.deal.end_block();
          };
          const auto found = std::find_if(loop.entries.begin(), loop.entries.end(), runs);
          EXPECT_EQ(first, found - loop.entries.begin()) << "block " << block;
        }
      }
    EXPECT_EQ(next, table.loops.size());
  }
}

/// A plan that has all groups in turn from block 0 on: blocks have several entries. Without tiles, which
/// would have to move with the slots.
TEST(ShareBodies, ABlockRunsAllItsEntries) {
  SKIP_WITHOUT_COMPILER();
  for (const std::string& text : {testing::optimiser_hlo({{9000}, {64}, {20000}, {64}, {128}, {4000}}),
                                  testing::softmaxes_hlo({1, 3, 31, 33, 200, 64}, 100)}) {
    const Graph graph = graph_of(text);
    for (FusionPlan plan : plans(graph, "off")) {
      KernelPlan& kernel = plan.kernels.at(0);
      for (Group& group : kernel.groups) group.lane = 0, group.deal.first_block = 0;
      std::int64_t offset = 0;
      for (MemorySlot& slot : kernel.shared) {
        slot.offset = offset;
        offset += (slot.bytes + 15) / 16 * 16;
      }
      kernel.launch.shared_bytes = offset;
      const Schedule lowered = build_schedule(graph, kernel);
      const KernelTable table = kernel_table(lowered);
      EXPECT_TRUE(std::any_of(table.loops.begin(), table.loops.end(),
                              [](const LoopTable& loop) { return !loop.one_a_block; }));
      testing::expect_correct(graph, plan);
    }
  }
}

/// Inputs of 450 tensors, every one read in an expression of its own: no two loops are equal.
TEST(ShareBodies, ManyPointersStandInTheTable) {
  SKIP_WITHOUT_COMPILER();
  constexpr int kInputs = 450;
  std::string text = "HloModule wide\nENTRY main {\n", pieces, last;
  for (int i = 0; i < kInputs; ++i) {
    text += fmt::format("  x{0} = f32[4] parameter({0})\n", i);
    if (i > 0) text += fmt::format("  y{0} = f32[4] {1}({2}, x{0})\n", i, i % 3 ? "add" : "multiply", last);
    last = i > 0 ? fmt::format("y{}", i) : "x0";
  }
  const Graph graph = graph_of(text + fmt::format("  ROOT r = f32[4] negate({})\n}}\n", last));
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  ASSERT_EQ(plan.kernels.size(), 1u);
  const Schedule kernel = build_schedule(graph, plan.kernels[0]);
  const std::vector<KernelArgument> arguments = kernel_arguments(kernel);
  ASSERT_EQ(arguments.size(), 1u);
  EXPECT_EQ(arguments[0].kind, KernelArgument::Kind::kTable);
  EXPECT_EQ(kernel_table(kernel).pointers.size(), kInputs + 1u);
  testing::expect_correct(graph, plan);
}

TEST(ShareBodies, PointersFromTheTablePromiseNothingOfAliases) {
  const Graph graph = small_tensors(8);
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  const std::string source = to_cuda(graph, build_schedule(graph, plan.kernels.at(0)), false);
  EXPECT_THAT(source, ::testing::ContainsRegex("const float\\* const (g[0-9]+) = entry\\.g[0-9]+;"));
  EXPECT_THAT(source, ::testing::HasSubstr("const unsigned char* __restrict__ table"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
