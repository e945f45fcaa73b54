// Vectors and unrolling: fewer instructions move the same sectors, results stay.
#include <fmt/format.h>

#include "analysis/schedule/layout.h"
#include "tests/codegen/harness.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::mapping_of;
using K = testing::MappingKind;

struct Moved {
  std::uint64_t instructions = 0, load_sectors = 0, store_sectors = 0;
};

Moved run(const Graph& graph, testing::MappingFields mapping, int block, int vector, int unroll) {
  mapping.vector = vector;
  mapping.unroll = unroll;
  const FusionPlan plan = testing::plan_of(graph, testing::one_group(graph, {"y"}, mapping, block));
  testing::expect_correct(graph, plan);
  CompileOptions options;
  options.ptxas = false;
  const RunResult result = run_simulated(graph, device("v100"), compile(graph, device("v100"), plan, options),
                                         generate_inputs(graph, 0));
  const sim::Counters& counters = result.kernels.at(0).counters;
  return {counters.inst_ldst, counters.dram_read_transactions, counters.dram_write_transactions};
}

Graph elementwise(const std::string& dtype, std::int64_t elements) {
  return testing::graph_of(fmt::format(R"(HloModule m
ENTRY main {{
  a = {0}[{1}] parameter(0)
  b = {0}[{1}] parameter(1)
  p = {0}[{1}] multiply(a, b)
  ROOT y = {0}[{1}] add(p, b)
}}
)",
                                       dtype, elements));
}

TEST(Vectors, MoveTheSameSectorsByFewerInstructions) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = elementwise("f32", 8192);
  const Moved scalar = run(graph, mapping_of(K::kElementwise, 8192, 1, 1024), 128, 1, 1);
  const Moved vectors = run(graph, mapping_of(K::kElementwise, 8192, 1, 1024), 128, 4, 1);
  const Moved unrolled = run(graph, mapping_of(K::kElementwise, 8192, 1, 1024), 128, 4, 2);
  EXPECT_EQ(scalar.instructions, 3u * 8192 / 32);
  EXPECT_EQ(vectors.instructions * 4, scalar.instructions);
  EXPECT_EQ(unrolled.instructions * 4, scalar.instructions);
  EXPECT_EQ(vectors.load_sectors, scalar.load_sectors);
  EXPECT_EQ(vectors.store_sectors, scalar.store_sectors);
}

/// What follows each half of a row is the other, negated, of rows of `cols` and halves that meet at `meet`.
Graph halves(const std::string& dtype, std::int64_t rows, std::int64_t cols, std::int64_t meet) {
  return testing::graph_of(fmt::format(R"(HloModule m
ENTRY main {{
  x = {0}[{1},{2}] parameter(0)
  low = {0}[{1},{3}] slice(x), slice={{[0:{1}], [0:{3}]}}
  high = {0}[{1},{4}] slice(x), slice={{[0:{1}], [{3}:{2}]}}
  minus = {0}[{1},{4}] negate(high)
  turned = {0}[{1},{2}] concatenate(minus, low), dimensions={{1}}
  ROOT y = {0}[{1},{2}] add(x, turned)
}}
)",
                                       dtype, rows, cols, meet, cols - meet));
}

TEST(Vectors, LoadsUnderAConditionThatHoldsForWholeOnesMoveInVectors) {
  SKIP_WITHOUT_COMPILER();
  const auto instructions = [](std::int64_t meet, int vector, int unroll) {
    return run(halves("f32", 128, 64, meet), mapping_of(K::kElementwise, 8192, 1, 1024), 128, vector, unroll)
        .instructions;
  };
  // Of a vector: x, one of the halves, or the other in a warp's other lanes, y.
  EXPECT_EQ(instructions(32, 4, 1), 4u * 8192 / 4 / 32);
  EXPECT_EQ(instructions(32, 4, 2), 4u * 8192 / 4 / 32);
  // A vector has the end of the first half and the beginning of the second: these move by themselves.
  EXPECT_GT(instructions(30, 4, 1), 4u * 8192 / 4 / 32);
  EXPECT_EQ(instructions(30, 2, 1), 4u * 8192 / 2 / 32);
}

TEST(Vectors, LoadsUnderConditionsAreRightInAnyShapeAndType) {
  SKIP_WITHOUT_COMPILER();
  for (const char* dtype : {"f32", "bf16", "s8"})
    for (const auto& [rows, cols, meet] :
         {std::tuple{128, 64, 32}, std::tuple{7, 48, 16}, std::tuple{33, 40, 24}, std::tuple{5, 24, 3}})
      for (const int unroll : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} {}x{} at {}, {}", dtype, rows, cols, meet, unroll));
        run(halves(dtype, rows, cols, meet), mapping_of(K::kElementwise, rows * cols, 1, 1024), 128, 4,
            unroll);
      }
}

/// A softmax whose rows begin anywhere.
Graph softmax_of(const std::string& dtype, std::int64_t rows, std::int64_t cols) {
  return testing::graph_of(fmt::format(R"(HloModule m
sum {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT s = {0}[] add(a, b) }}
max {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT s = {0}[] maximum(a, b) }}
ENTRY main {{
  x = {0}[{1},{2}] parameter(0)
  zero = {0}[] constant(0)
  low = {0}[] constant(-inf)
  m = {0}[{1}] reduce(x, low), dimensions={{1}}, to_apply=max
  ms = {0}[{1},{2}] broadcast(m), dimensions={{0}}
  d = {0}[{1},{2}] subtract(x, ms)
  e = {0}[{1},{2}] exponential(d)
  t = {0}[{1}] reduce(e, zero), dimensions={{1}}, to_apply=sum
  ts = {0}[{1},{2}] broadcast(t), dimensions={{0}}
  ROOT y = {0}[{1},{2}] divide(e, ts)
}}
)",
                                       dtype, rows, cols));
}

TEST(Vectors, RowsThatNoVectorDividesArePeeledAndAskForWholeSectors) {
  SKIP_WITHOUT_COMPILER();
  for (const auto& [dtype, vector] : {std::pair{"f32", 4}, std::pair{"bf16", 8}}) {
    SCOPED_TRACE(dtype);
    const Graph graph = softmax_of(dtype, 300, 5003);
    const Device& target = device("h200");
    const FusionPlan plan = make_plan(graph, target, "astitch");
    ASSERT_EQ(plan.kernels.size(), 1u);
    ASSERT_TRUE(Layout(plan.kernels[0].groups[0].mapping, plan.kernels[0].launch.block).peeled)
        << to_text(testing::MappingFields(plan.kernels[0].groups[0]));
    EXPECT_EQ(vectors(plan.kernels[0].groups[0].mapping).width, vector);
    testing::expect_correct(graph, plan);
    CompileOptions options;
    options.ptxas = false;
    RunOptions run_options;
    run_options.sanitize = {.race = true, .init = true};
    const RunResult run = run_simulated(graph, target, compile(graph, target, plan, options),
                                        generate_inputs(graph, 0), run_options);
    ASSERT_TRUE(run.findings.empty()) << run.findings[0].message;
    const sim::Counters& counters = run.kernels.at(0).counters;
    const double bytes =
        static_cast<double>(graph.entry_computation().node(testing::op(graph, "x")).shape.byte_size());
    EXPECT_LE(32.0 * static_cast<double>(counters.gld_transactions), 1.05 * bytes);
    EXPECT_LE(32.0 * static_cast<double>(counters.dram_read_transactions), 1.05 * bytes);
  }
}

TEST(Vectors, RowsWhoseColumnsHaveValuesOfTheirOwnAreNotPeeled) {
  const Graph graph = testing::graph_of(R"(
  x = f32[67,5003] parameter(0)
  scale = f32[5003] parameter(1)
  scales = f32[67,5003] broadcast(scale), dimensions={1}
  zero = f32[] constant(0)
  p = f32[67,5003] multiply(x, scales)
  ROOT r = f32[67] reduce(p, zero), dimensions={1}, to_apply=sum)");
  for (const KernelPlan& kernel : make_plan(graph, device("h200"), "astitch").kernels)
    for (const Group& group : kernel.groups) EXPECT_FALSE(Layout(group.mapping, kernel.launch.block).peeled);
}

TEST(Vectors, HalvesMoveEightAtATime) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = elementwise("f16", 8192);
  EXPECT_EQ(run(graph, mapping_of(K::kElementwise, 8192, 1, 1024), 128, 8, 1).instructions,
            3u * 8192 / 8 / 32);
}

TEST(Vectors, TheLastTaskIsGuarded) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = elementwise("f32", 5004);
  run(graph, mapping_of(K::kElementwise, 5004, 1, 1024), 64, 4, 2);
  run(graph, mapping_of(K::kElementwise, 5004, 1, 600), 64, 4, 1);
}

/// y reads x where vectors of y's elements are not adjacent or not aligned in x.
std::string reading(const std::string& x, const std::string& read) {
  return fmt::format("HloModule m\nENTRY main {{\n  x = {} parameter(0)\n  ROOT y = f32[64,32] {}\n}}\n", x,
                     read);
}

TEST(Vectors, WhatIsNotAdjacentOrNotAlignedMovesElementByElement) {
  SKIP_WITHOUT_COMPILER();
  const testing::MappingFields mapping = mapping_of(K::kElementwise, 2048, 1, 512);
  const std::uint64_t stores = 2048 / 4 / 32, scalar = 2048 / 32;
  const auto loads = [&](const std::string& text) {
    return run(testing::graph_of(text), mapping, 128, 4, 1).instructions - stores;
  };
  EXPECT_EQ(loads(reading("f32[64,32]", "negate(x)")), stores);
  EXPECT_EQ(loads(reading("f32[64,40]", "slice(x), slice={[0:64], [4:36]}")), stores);
  EXPECT_EQ(loads(reading("f32[64,40]", "slice(x), slice={[0:64], [3:35]}")), scalar);
  EXPECT_EQ(loads(reading("f32[64,33]", "slice(x), slice={[0:64], [0:32]}")), scalar);
  EXPECT_EQ(loads(reading("f32[32,64]", "transpose(x), dimensions={1,0}")), scalar);
  EXPECT_EQ(loads(reading("f32[64,32]", "reverse(x), dimensions={1}")), scalar);
  EXPECT_EQ(loads(reading("f32[32]", "broadcast(x), dimensions={1}")), stores);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
