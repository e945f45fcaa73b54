// Vectors and unrolling: fewer instructions move the same sectors, results stay.
#include <fmt/format.h>

#include "tests/codegen/harness.h"

namespace stitchwork {
namespace {

using testing::mapping_of;
using K = MappingKind;

struct Moved {
  std::uint64_t instructions = 0, load_sectors = 0, store_sectors = 0;
};

Moved run(const Graph& graph, ThreadMapping mapping, int block, int vector, int unroll) {
  mapping.vector = vector;
  mapping.unroll = unroll;
  const FusionPlan plan = testing::plan_of(graph, testing::one_group(graph, {"y"}, mapping, block));
  testing::expect_correct(graph, plan);
  CompileOptions options;
  options.ptxas = false;
  options.cache_dir = STITCHWORK_BINARY_DIR "/test-kernels";
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
  const ThreadMapping mapping = mapping_of(K::kElementwise, 2048, 1, 512);
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

}  // namespace
}  // namespace stitchwork
