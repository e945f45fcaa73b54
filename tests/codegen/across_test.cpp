// Reductions across the rows of a row reduction's group: accumulated over a block's tasks, folded from
// partials.
#include <fmt/format.h>

#include "analysis/verify/verify.h"
#include "tests/codegen/planned.h"

namespace stitchwork {
namespace TEST_FILE {

struct Case {
  int rows = 100, cols = 33;
  const char* type = "f32";
  const char* reducer = "add";
  const char* initial = "0";
};

/// Row sums, what they scale, and the column reduction of that; it is an output, or read by `out`.
std::string row_and_column(const Case& c, bool read_inside) {
  return fmt::format(R"(HloModule t
sum {{ a = {2}[] parameter(0)  b = {2}[] parameter(1)  ROOT s = {2}[] add(a, b) }}
combine {{ a = {2}[] parameter(0)  b = {2}[] parameter(1)  ROOT s = {2}[] {3}(a, b) }}
ENTRY main {{
  x = {2}[{0},{1}] parameter(0)
  g = {2}[{1}] parameter(1)
  zero = {2}[] constant(0)
  start = {2}[] constant({4})
  r = {2}[{0}] reduce(x, zero), dimensions={{1}}, to_apply=sum
  wr = {2}[{0},{1}] broadcast(r), dimensions={{0}}
  d = {2}[{0},{1}] subtract(x, wr)
  c = {2}[{1}] reduce(d, start), dimensions={{0}}, to_apply=combine
  n = {2}[{1}] subtract(c, g)
  ROOT t = ({2}[{0},{1}], {2}[{1}]) tuple(d, {5})
}}
)",
                     c.rows, c.cols, c.type, c.reducer, c.initial, read_inside ? "n" : "c");
}

/// One row_pack group that makes r, d and, across its rows, c; n in a group of its own behind a barrier.
FusionPlan hand_made(const Graph& graph, const Case& c, testing::MappingFields mapping, bool read_inside,
                     int block) {
  const Computation& computation = graph.entry_computation();
  const auto id = [&](const char* name) { return computation.find(name); };
  std::vector<std::string> materialised{"r", "d", "c"};
  KernelPlan kernel = testing::one_group(graph, materialised, mapping, block);
  Group& group = kernel.groups[0];
  std::sort(group.sub_dominants.begin(), group.sub_dominants.end());
  group.across = {id("c")};
  std::erase_if(group.ops, [&](NodeId op) { return op == id("n"); });
  const DType dtype = computation.node(id("c")).shape.dtype;
  kernel.schemes[id("c")] = Scheme::kGlobal;
  kernel.schemes[id("r")] = Scheme::kRegional;
  kernel.schemes[id("d")] = Scheme::kLocal;
  kernel.shared = {{id("r"), 0, mapping.rows_per_block * byte_size(dtype)}};
  kernel.scratch = {{id("c"), 0, across_bytes(mapping, mapping.deal(), dtype)}};
  kernel.launch.scratch_bytes = across_bytes(mapping, mapping.deal(), dtype);
  kernel.launch.shared_bytes = mapping.rows_per_block * byte_size(dtype);
  kernel.launch.grid_barriers = 1;
  kernel.launch.register_bound = 64;
  kernel.launch.blocks_per_sm = 1;
  if (read_inside) {
    Group reader;
    reader.dominant = id("n");
    reader.ops = {id("n")};
    testing::mapping_of(testing::MappingKind::kElementwise, c.cols, 1, std::min(c.cols, block)).give(reader);
    kernel.launch.grid = std::max(kernel.launch.grid, reader.deal.blocks());
    kernel.groups.push_back(reader);
    kernel.schemes[id("n")] = Scheme::kIndependent;
    kernel.levels[id("n")] = 1;
  } else {
    std::erase(kernel.ops, id("n"));
    kernel.schemes.erase(id("n"));
    kernel.levels.erase(id("n"));
  }
  const std::int64_t workspace = reduction_workspace_bytes(computation, kernel);
  const std::int64_t offset = (kernel.launch.shared_bytes + 15) / 16 * 16;
  kernel.shared.push_back({kNoNode, offset, workspace});
  kernel.launch.shared_bytes = offset + workspace;
  return testing::plan_of(graph, kernel);
}

void expect_right(const Case& c, testing::MappingFields mapping, int block) {
  for (const bool read_inside : {false, true}) {
    SCOPED_TRACE(fmt::format("{}x{} {} {}, {}, read inside {}", c.rows, c.cols, c.type, c.reducer,
                             to_text(mapping), read_inside));
    const Graph graph = testing::graph_of(row_and_column(c, read_inside));
    const FusionPlan plan = hand_made(graph, c, mapping, read_inside, block);
    const std::vector<Verdict> problems = verify(graph, device("v100"), plan);
    ASSERT_TRUE(problems.empty()) << problems[0].rule << ": " << problems[0].why;
    testing::expect_correct(graph, plan);
  }
}

testing::MappingFields rows_of(const Case& c, int threads, int rows, int tasks_per_block, int vector = 1) {
  testing::MappingFields mapping =
      testing::mapping_of(testing::MappingKind::kRowPack, c.rows, c.cols, rows, threads, tasks_per_block);
  mapping.vector = vector;
  return mapping;
}

TEST(Across, ColumnsOfOddLengthsAreRight) {
  SKIP_WITHOUT_COMPILER();
  for (const int cols : {3, 31, 33, 1000}) {
    const Case c{45, cols};
    expect_right(c, rows_of(c, 32, 4, 3), 128);    // several rows, tasks and blocks
    expect_right(c, rows_of(c, 128, 1, 45), 128);  // one block, a row a task
    expect_right(c, rows_of(c, 64, 2, 1), 128);    // a task a block
  }
}

TEST(Across, VectorsAndRowsOfLessThanAWarpAreRight) {
  SKIP_WITHOUT_COMPILER();
  const Case wide{50, 96};
  expect_right(wide, rows_of(wide, 8, 16, 2, 4), 128);
  const Case narrow{200, 8};
  expect_right(narrow, rows_of(narrow, 2, 64, 2, 4), 128);
  expect_right(narrow, rows_of(narrow, 8, 16, 3), 128);
  const Case square{40, 40};
  expect_right(square, rows_of(square, 32, 4, 5), 128);
}

TEST(Across, ReducersAndTypesAreRight) {
  SKIP_WITHOUT_COMPILER();
  for (const char* type : {"f32", "f16", "bf16", "f64", "s32"})
    for (const auto& [reducer, initial] : {std::pair{"add", "3"}, {"maximum", "-5"}, {"minimum", "5"}}) {
      const Case c{30, 20, type, reducer, initial};
      expect_right(c, rows_of(c, 32, 2, 4), 64);
    }
  const Case product{9, 20, "f32", "multiply", "2"};
  expect_right(product, rows_of(product, 32, 2, 2), 64);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
