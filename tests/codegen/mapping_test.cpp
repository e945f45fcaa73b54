// Every kind of thread mapping, with what does not divide evenly: a reduction and an op that reads it back,
// stitched into one kernel by hand.
#include <fmt/format.h>

#include <random>

#include "analysis/judge/cost.h"
#include "tests/codegen/harness.h"
#include "tests/support/fuzz.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::mapping_of;
using K = testing::MappingKind;

struct Case {
  std::string name;
  testing::MappingFields mapping;
  int block = 64;
  bool columns = false;  ///< the reduced dimension is the outer one
  std::string dtype = "f32", reducer = "add", initial = "0";
};

/// r = reduce(x + x), y = (x + x) combined with r again.
std::string module_text(const Case& c) {
  const auto [rows, cols] = std::pair(c.mapping.rows, c.mapping.cols);
  const std::string full = c.columns ? fmt::format("{}[{},{}]", c.dtype, cols, rows)
                                     : fmt::format("{}[{},{}]", c.dtype, rows, cols);
  const int kept = c.columns ? 1 : 0;
  return fmt::format(R"(HloModule m
combine {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT s = {0}[] {1}(a, b) }}
ENTRY main {{
  x = {2} parameter(0)
  zero = {0}[] constant({3})
  e = {2} {1}(x, x)
  r = {0}[{4}] reduce(e, zero), dimensions={{{5}}}, to_apply=combine
  spread = {2} broadcast(r), dimensions={{{6}}}
  y = {2} {1}(e, spread)
  ROOT t = ({2}, {0}[{4}]) tuple(y, r)
}}
)",
                     c.dtype, c.reducer, full, c.initial, rows, 1 - kept, kept);
}

KernelPlan stitched(const Graph& graph, const Case& c) {
  const Computation& computation = graph.entry_computation();
  KernelPlan kernel = testing::one_group(graph, {"r", "y"}, c.mapping, c.block);
  const NodeId r = computation.find("r"), y = computation.find("y");
  const DType dtype = computation.node(r).shape.dtype;
  const std::int64_t workspace = reduction_workspace_bytes(c.mapping, c.block, dtype);
  if (c.mapping.split > 1) {
    kernel.schemes[r] = Scheme::kGlobal;
    kernel.levels[y] = 1;
    kernel.scratch = {{r, 0, partials_bytes(c.mapping, dtype)}};
    kernel.launch.scratch_bytes = partials_bytes(c.mapping, dtype);
    kernel.launch.grid_barriers = 1;
  } else {
    kernel.schemes[r] = Scheme::kRegional;
    kernel.shared = {{r, 0, c.mapping.rows_per_block * byte_size(dtype)}};
    kernel.launch.shared_bytes = (kernel.shared[0].bytes + 15) / 16 * 16;
  }
  if (workspace > 0) kernel.shared.push_back({kNoNode, kernel.launch.shared_bytes, workspace});
  kernel.launch.shared_bytes += workspace;
  return kernel;
}

/// The mapping with its tasks dealt to so many blocks.
testing::MappingFields on_blocks(testing::MappingFields mapping, std::int64_t blocks) {
  mapping.blocks = blocks;
  mapping.tasks_per_block = (mapping.tasks + blocks - 1) / blocks;
  return mapping;
}

testing::MappingFields vectors(testing::MappingFields mapping, int vector, int unroll) {
  mapping.vector = vector;
  mapping.unroll = unroll;
  return mapping;
}

class Mapping : public ::testing::TestWithParam<Case> {};

TEST_P(Mapping, StitchedReductionIsRight) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = testing::graph_of(module_text(GetParam()));
  const sim::Counters counters =
      testing::expect_correct(graph, testing::plan_of(graph, stitched(graph, GetParam())));
  EXPECT_EQ(counters.grid_barriers, GetParam().mapping.split > 1 ? 1u : 0u);
}

const std::vector<Case> kCases = {
    {"one_thread_a_row", mapping_of(K::kRowPack, 70, 5, 64, 1), 64},
    {"two_threads_a_row", mapping_of(K::kRowPack, 70, 5, 32, 2), 64},
    {"eight_threads_a_row_two_tasks", mapping_of(K::kRowPack, 70, 33, 8, 8, 2), 64},
    {"eight_tasks_on_five_blocks", on_blocks(mapping_of(K::kRowPack, 15, 100, 2, 32), 5), 64},
    {"tasks_times_blocks_beyond_32_bits", on_blocks(mapping_of(K::kRowPack, 70001, 1, 1, 1), 40000), 32},
    {"vectors_of_a_row", vectors(mapping_of(K::kRowPack, 70, 32, 8, 8), 4, 1), 64},
    {"vectors_idle_lanes", vectors(mapping_of(K::kRowPack, 7, 100, 2, 32), 4, 2), 64},
    {"vectors_kept_in_registers", vectors(mapping_of(K::kRowPack, 7, 1032, 1, 64), 2, 4), 64},
    {"vectors_in_long_rows", vectors(mapping_of(K::kRowPack, 3, 20000, 1, 64), 4, 2), 64},
    {"vectors_in_segments",
     vectors(mapping_of(K::kRowSplit, 3, 4000, 1, 64, 1, 4, testing::Combine::kPartials), 4, 2), 64},
    {"unrolled_uneven_segments",
     vectors(mapping_of(K::kRowSplit, 3, 4001, 1, 64, 1, 4, testing::Combine::kPartials), 1, 4), 64},
    {"unrolled_columns",
     vectors(mapping_of(K::kColumn, 70, 450, 32, 4, 1, 3, testing::Combine::kPartials), 1, 4), 128, true},
    {"vectors_of_halves", vectors(mapping_of(K::kRowPack, 9, 264, 2, 32), 8, 1), 64, false, "f16", "add",
     "1.5"},
    {"vectors_of_bytes", vectors(mapping_of(K::kRowPack, 9, 320, 2, 32), 16, 2), 64, false, "u8", "add", "3"},
    {"vectors_of_doubles", vectors(mapping_of(K::kRowPack, 9, 130, 2, 32), 2, 2), 64, false, "f64"},
    {"peeled_rows_kept_in_registers", vectors(mapping_of(K::kRowPack, 7, 1031, 1, 64), 4, 2), 64},
    {"peeled_rows_read_again", vectors(mapping_of(K::kRowPack, 3, 20001, 1, 64), 4, 2), 64},
    {"peeled_rows_of_a_warp", vectors(mapping_of(K::kRowPack, 9, 33, 2, 32), 4, 1), 64},
    {"peeled_rows_shorter_than_a_vector", vectors(mapping_of(K::kRowPack, 70, 3, 8, 8), 4, 1), 64},
    {"peeled_rows_several_tasks_a_block", vectors(mapping_of(K::kRowPack, 15, 301, 2, 32, 3), 4, 4), 64},
    {"peeled_rows_that_end_with_a_vector", vectors(mapping_of(K::kRowPack, 8, 130, 2, 32), 4, 1), 64},
    {"peeled_single_row", vectors(mapping_of(K::kRowPack, 1, 77, 1, 64), 4, 1), 64},
    {"peeled_rows_of_halves", vectors(mapping_of(K::kRowPack, 9, 1067, 2, 32), 8, 2), 64, false, "f16", "add",
     "1.5"},
    {"peeled_rows_of_bytes", vectors(mapping_of(K::kRowPack, 9, 2037, 2, 32), 16, 1), 64, false, "u8", "add",
     "3"},
    {"peeled_rows_of_doubles", vectors(mapping_of(K::kRowPack, 9, 131, 2, 32), 2, 2), 64, false, "f64"},
    {"vectors_down_columns", vectors(mapping_of(K::kRowPack, 12, 64, 2, 32), 4, 1), 64, true},
    {"warp_a_row", mapping_of(K::kRowPack, 33, 100, 2, 32), 64},
    {"three_warps_a_row_idle_threads", mapping_of(K::kRowPack, 7, 100, 2, 96, 2), 256},
    {"block_a_row", mapping_of(K::kRowPack, 5, 1000, 1, 256), 256},
    {"block_a_row_vertical", mapping_of(K::kRowPack, 5, 257, 1, 256, 2), 256},
    {"single_row", mapping_of(K::kRowPack, 1, 77, 1, 64), 64},
    {"single_column", mapping_of(K::kRowPack, 40, 1, 2, 32), 64},
    {"no_columns", mapping_of(K::kRowPack, 5, 0, 1, 64), 64},
    {"odd_block", mapping_of(K::kRowPack, 9, 30, 1, 32), 33},
    {"split_rows", mapping_of(K::kRowSplit, 3, 1000, 1, 128, 1, 4, testing::Combine::kPartials), 128},
    {"split_rows_unevenly", mapping_of(K::kRowSplit, 3, 1001, 1, 128, 2, 3, testing::Combine::kPartials),
     128},
    {"split_into_more_segments_than_columns",
     mapping_of(K::kRowSplit, 2, 3, 1, 64, 1, 4, testing::Combine::kPartials), 64},
    {"serial_rows", mapping_of(K::kRowSerial, 300, 7, 128), 128},
    {"serial_rows_several_a_thread", mapping_of(K::kRowSerial, 300, 7, 100, 1, 2), 64},
    {"columns", mapping_of(K::kColumn, 70, 45, 32, 8), 256, true},
    {"columns_idle_threads", mapping_of(K::kColumn, 50, 45, 24, 10, 2), 256, true},
    {"columns_one_slice", mapping_of(K::kColumn, 70, 9, 64, 1), 64, true},
    {"columns_split", mapping_of(K::kColumn, 70, 45, 32, 4, 1, 3, testing::Combine::kPartials), 128, true},
    {"column_vectors", vectors(mapping_of(K::kColumn, 72, 450, 32, 4), 4, 2), 128, true},
    {"column_vectors_partial_tile", vectors(mapping_of(K::kColumn, 72, 45, 32, 4), 4, 1), 128, true},
    {"column_vectors_split",
     vectors(mapping_of(K::kColumn, 64, 450, 32, 4, 1, 3, testing::Combine::kPartials), 4, 2), 128, true},
    {"column_vectors_of_halves", vectors(mapping_of(K::kColumn, 72, 300, 24, 5), 8, 2), 128, true, "f16",
     "add", "1.5"},
    {"column_vectors_of_doubles", vectors(mapping_of(K::kColumn, 10, 301, 10, 6), 2, 2), 64, true, "f64"},
    {"flat_columns", vectors(mapping_of(K::kColumn, 33, 1030, 33, 3), 4, 2), 128, true},
    {"flat_columns_of_an_odd_whole", vectors(mapping_of(K::kColumn, 33, 1031, 33, 3), 4, 2), 128, true},
    {"flat_columns_split",
     vectors(mapping_of(K::kColumn, 35, 1001, 35, 1, 1, 7, testing::Combine::kPartials), 4, 1), 64, true},
    {"flat_columns_of_halves", vectors(mapping_of(K::kColumn, 33, 999, 33, 3), 8, 2), 128, true, "f16", "add",
     "1.5"},
    {"flat_columns_of_bytes", vectors(mapping_of(K::kColumn, 7, 999, 7, 9), 16, 1), 64, true, "u8", "add",
     "3"},
    {"flat_columns_fewer_than_a_vector", vectors(mapping_of(K::kColumn, 3, 500, 3, 21), 4, 2), 64, true},
    {"flat_columns_beyond_their_segments",
     vectors(mapping_of(K::kColumn, 5, 17, 5, 12, 1, 7, testing::Combine::kPartials), 4, 1), 64, true},
    {"shifted_columns", vectors(mapping_of(K::kColumn, 301, 90, 56, 2), 4, 2), 128, true},
    {"shifted_columns_of_an_odd_whole", vectors(mapping_of(K::kColumn, 301, 91, 56, 2), 4, 2), 128, true},
    {"shifted_columns_split",
     vectors(mapping_of(K::kColumn, 201, 301, 56, 2, 1, 3, testing::Combine::kPartials), 4, 2), 128, true},
    {"shifted_columns_of_halves", vectors(mapping_of(K::kColumn, 301, 90, 48, 2), 8, 1), 128, true, "f16",
     "add", "1.5"},
    {"row_pack_over_columns", mapping_of(K::kRowPack, 12, 50, 2, 32), 64, true},
    {"half_sum", mapping_of(K::kRowPack, 6, 100, 2, 32), 64, false, "f16", "add", "1.5"},
    {"half_split", mapping_of(K::kRowSplit, 3, 300, 1, 64, 1, 2, testing::Combine::kPartials), 64, false,
     "f16", "add", "1.5"},
    {"bfloat_maximum", mapping_of(K::kRowPack, 6, 100, 1, 64), 64, false, "bf16", "maximum", "-inf"},
    {"double_sum", mapping_of(K::kRowPack, 6, 100, 1, 64), 64, false, "f64", "add", "3"},
    {"float_product", mapping_of(K::kRowPack, 6, 10, 2, 32), 64, false, "f32", "multiply", "2"},
    {"float_minimum", mapping_of(K::kRowPack, 6, 100, 1, 64), 64, false, "f32", "minimum", "inf"},
    {"int_sum", mapping_of(K::kRowSplit, 3, 300, 1, 64, 1, 2, testing::Combine::kPartials), 64, false, "s32",
     "add", "7"},
    {"byte_sum_wraps", mapping_of(K::kRowPack, 4, 300, 1, 64), 64, false, "u8", "add", "250"},
    {"long_maximum", mapping_of(K::kRowPack, 4, 300, 1, 64), 64, false, "s64", "maximum", "-5"},
    {"int_xor", mapping_of(K::kColumn, 40, 30, 32, 4), 128, true, "u32", "xor", "9"},
    {"short_and", mapping_of(K::kRowPack, 4, 300, 1, 64), 64, false, "s16", "and", "-1"},
    {"pred_or", mapping_of(K::kRowPack, 4, 300, 1, 64), 64, false, "pred", "or", "false"},
    {"pred_and_split", mapping_of(K::kRowSplit, 4, 300, 1, 64, 1, 2, testing::Combine::kPartials), 64, false,
     "pred", "and", "true"},
};

INSTANTIATE_TEST_SUITE_P(Kinds, Mapping, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

/// A single dimension reduced by atomics into a zeroed buffer; the initial value counts once.
TEST(AtomicMapping, AddsTheInitialValueOnce) {
  SKIP_WITHOUT_COMPILER();
  for (const std::string dtype : {"f32", "s32", "f64", "u8", "f16", "bf16"}) {
    const Graph graph = testing::graph_of(fmt::format(R"(HloModule m
sum {{ a = {0}[] parameter(0)  b = {0}[] parameter(1)  ROOT s = {0}[] add(a, b) }}
ENTRY main {{
  x = {0}[100,40] parameter(0)
  two = {0}[] constant(2)
  ROOT r = {0}[40] reduce(x, two), dimensions={{0}}, to_apply=sum
}}
)",
                                                      dtype));
    const testing::MappingFields mapping =
        mapping_of(K::kColumn, 40, 100, 32, 2, 1, 3, testing::Combine::kAtomic);
    testing::expect_correct(graph, testing::plan_of(graph, testing::one_group(graph, {"r"}, mapping, 64)));
  }
}

/// Blocks with a task more than others are what the kernel waits for, in its estimate as in the simulator.
TEST(Mapping, UnevenTasksTakeAsLongAsTheMost) {
  SKIP_WITHOUT_COMPILER();
  const Device target = testing::share_of("v100", 8);
  CompileOptions options;
  std::mt19937 random(3);
  for (int drawn = 0; drawn < 4; ++drawn) {
    const std::int64_t blocks = 8, cols = 2000 + static_cast<std::int64_t>(random() % 3000);
    const auto estimated = [&](std::int64_t rows) {
      const Graph graph = testing::graph_of(fmt::format(R"(HloModule m
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  x = f32[{0},{1}] parameter(0)
  e = f32[{0},{1}] tanh(x)
  zero = f32[] constant(0)
  ROOT r = f32[{0}] reduce(e, zero), dimensions={{1}}, to_apply=sum
}}
)",
                                                        rows, cols));
      testing::MappingFields mapping = mapping_of(K::kRowPack, rows, cols, 1, 256);
      mapping.blocks = blocks;
      mapping.tasks_per_block = (rows + blocks - 1) / blocks;
      const FusionPlan plan = testing::plan_of(graph, testing::one_group(graph, {"r"}, mapping, 256));
      const double us = kernel_cost(graph, target, plan.kernels.at(0)).predicted_us;
      const RunResult run =
          run_simulated(graph, target, compile(graph, target, plan, options), generate_inputs(graph, 0));
      EXPECT_NEAR(us / run.kernels.at(0).time_us, 1, 0.12) << rows << "x" << cols;
      return us;
    };
    const std::int64_t whole = 1 + static_cast<std::int64_t>(random() % 3);  // tasks of every block
    const double even = estimated(blocks * whole), most = estimated(blocks * (whole + 1)),
                 uneven = estimated(blocks * whole + 1 + static_cast<std::int64_t>(random() % 6));
    EXPECT_GT(uneven, even + 0.7 * (most - even));
    EXPECT_LE(uneven, 1.01 * most);
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
