// What mappings and groups know of the values they read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/forms/launches.h"
#include "tests/support/astitch_passes.h"
#include "tests/support/graphs.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

/// Every level doubles the maps under which the sums are read.
std::string doubling(int levels) {
  std::string body =
      "ENTRY main {\n  p = f32[20000,8] parameter(0)\n  zero = f32[] constant(0)\n"
      "  x0 = f32[20000] reduce(p, zero), dimensions={1}, to_apply=sum\n";
  std::int64_t length = 20000;
  for (int k = 0; k < levels; ++k) {
    const std::int64_t step = std::int64_t{1} << k, rest = length - step;
    body += fmt::format(
        "  a{0} = f32[{1}] slice(x{0}), slice={{[0:{1}]}}\n  b{0} = f32[{1}] slice(x{0}), "
        "slice={{[{2}:{3}]}}\n  {4}x{5} = f32[{1}] add(a{0}, b{0})\n",
        k, rest, step, length, k + 1 == levels ? "ROOT " : "", k + 1);
    length = rest;
  }
  return body + "}\n";
}

TEST(GroupReads, BeyondTheLimitMayBeAnywhere) {
  for (const int levels : {4, 13}) {
    const Graph graph = parse(doubling(levels));
    const Passes passes(graph);
    const NodeId sums = passes.nodes.computation->find("x0");
    std::size_t known = 0, anywhere = 0;
    for (const GroupReads& group : passes.finalization.reads)
      for (const Read& read : group.reads)
        if (read.value == sums) ++(read.map ? known : anywhere);
    const std::size_t maps = std::size_t{1} << levels;
    EXPECT_TRUE(known == maps || anywhere > 0) << known << " of " << maps;
    EXPECT_EQ(anywhere > 0, levels == 13);
  }
}

/// x less its row's mean, scaled by a value a column.
Graph scaled(std::int64_t rows, std::int64_t cols, const std::string& scale_of) {
  return stitchwork::testing::graph_of(fmt::format(
      "x = f32[{0},{1}] parameter(0)\n g = f32[{2}] parameter(1)\n zero = f32[] constant(0)\n"
      "r = f32[{0}] reduce(x, zero), dimensions={{1}}, to_apply=sum\n"
      "b = f32[{0},{1}] broadcast(r), dimensions={{0}}\n s = f32[{0},{1}] broadcast(g), dimensions={{{3}}}\n"
      "d = f32[{0},{1}] subtract(x, b)\n ROOT y = f32[{0},{1}] multiply(d, s)",
      rows, cols, scale_of == "row" ? rows : cols, scale_of == "row" ? 0 : 1));
}

TEST(RowWork, SquareDomainsTellRowsFromColsByTheirMaps) {
  for (const std::string scale : {"row", "col"}) {
    std::vector<RowWork> works;
    for (const std::int64_t rows : {8193, 8192}) {  // 8192 columns: square
      const Graph graph = scaled(rows, 8192, scale);
      const Nodes nodes = node_facts(graph);
      Options options;
      options.tuned = true;
      Recorder silent(false);
      const StitchOp op = find_scope(nodes, options.max_ops, silent).stitch_ops.at(0);
      works.push_back(mapping_limits(nodes, op, device("h200"), options, 0, {}).row_work);
    }
    EXPECT_EQ(works[0].in_order, scale == "row");
    EXPECT_EQ(works[1].in_order, works[0].in_order) << scale;
    EXPECT_EQ(works[1].staged_col_bytes, works[0].staged_col_bytes) << scale;
    EXPECT_EQ(works[1].staged_bytes, works[0].staged_bytes) << scale;
    EXPECT_EQ(works[1].narrowest_bytes, works[0].narrowest_bytes) << scale;
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
