// Rows that begin anywhere in memory move through shared memory, a task's as one range: in whole sectors, and
// results stay.
#include <fmt/format.h>

#include "tests/codegen/planned.h"
#include "tests/codegen/workloads.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;
using testing::WorkloadSize;

struct Moved {
  double load_spread = 0, store_spread = 0;  ///< sectors of requests over those of the bytes asked for
  double load_requests = 0, load_bytes = 0;
  bool staged = false;
  std::size_t tiles = 0, places = 0;  ///< of elements; different places that they have
};

bool is_staged(const FusionPlan& plan) {
  return std::any_of(plan.kernels.begin(), plan.kernels.end(), [](const KernelPlan& kernel) {
    return std::any_of(kernel.groups.begin(), kernel.groups.end(),
                       [](const Group& group) { return stitchwork::is_staged(group.mapping); });
  });
}

Moved run(const Graph& graph, const std::string& target = "h200", const std::string& tiles = "on") {
  PlanOptions options;
  options.knobs["tiles"] = tiles;
  const FusionPlan plan = make_plan(graph, device(target), "astitch", options);
  const RunResult result = testing::run_sanitized(graph, device(target), plan).run;
  Moved moved;
  moved.staged = is_staged(plan);
  for (const KernelRun& kernel : result.kernels) {
    moved.load_bytes += static_cast<double>(kernel.counters.gld_bytes);
    moved.load_requests += static_cast<double>(kernel.counters.gld_requests);
  }
  const testing::SectorSpread spread = testing::sector_spread(result);
  moved.load_spread = spread.loads;
  moved.store_spread = spread.stores;
  for (const KernelPlan& kernel : plan.kernels) {
    std::set<std::int64_t> places;
    for (const Tile& tile : kernel.tiles) {
      const testing::MappingFields m = kernel.groups.at(0);
      if (graph.entry_computation().node(tile.op).shape.elements_count() != m.rows * m.cols) continue;
      places.insert(tile.offset);
      ++moved.tiles;
    }
    moved.places += places.size();
  }
  return moved;
}

Graph workload(const char* name, std::int64_t rows, std::int64_t cols, const char* dtype) {
  return graph_of(testing::workload(name).hlo({rows, cols, dtype}));
}

TEST(StagedRows, MoveInWholeSectors) {
  SKIP_WITHOUT_COMPILER();
  for (const char* dtype : {"f32", "bf16"})
    for (const std::int64_t cols : {33, 35, 50})
      for (const char* name : {"softmax", "layer_norm"}) {
        SCOPED_TRACE(fmt::format("{} of {} columns, {}", name, cols, dtype));
        const Moved moved = run(workload(name, 33792, cols, dtype));
        EXPECT_TRUE(moved.staged);
        EXPECT_EQ(moved.tiles, 2u);
        EXPECT_EQ(moved.places, 1u);         // the result takes the place of what it is made from
        EXPECT_LE(moved.load_spread, 1.06);  // 66 bytes of a value a col take three sectors in every task
        EXPECT_LE(moved.store_spread, 1.05);
      }
}

TEST(StagedRows, TheKnobLeavesThemToTheirLanes) {
  SKIP_WITHOUT_COMPILER();
  const Moved moved = run(workload("softmax", 33792, 33, "f32"), "h200", "off");
  EXPECT_FALSE(moved.staged);
  EXPECT_EQ(moved.tiles, 0u);
  EXPECT_GT(moved.load_spread, 1.2);
}

/// 135,301 x 33 elements: all tasks but the last are whole vectors, and as many that nearly all requests are
/// full (fewer rows make smaller tasks).
TEST(StagedRows, MoveInVectorsWhereTheWholeIsOdd) {
  SKIP_WITHOUT_COMPILER();
  for (const char* dtype : {"f32", "bf16"}) {
    SCOPED_TRACE(dtype);
    const Moved moved = run(workload("softmax", 135301, 33, dtype));
    EXPECT_TRUE(moved.staged);
    EXPECT_LE(moved.load_requests * 32 * 16, 1.05 * moved.load_bytes);
  }
}

TEST(StagedRows, AreRightWhereTasksEndInPartAndTypesDiffer) {
  SKIP_WITHOUT_COMPILER();
  int staged = 0;  // of 36
  for (const auto& [rows, cols] : {std::pair{40000, 33}, std::pair{30001, 35}, std::pair{20011, 37}})
    for (const char* dtype : {"f32", "bf16", "f16"}) {
      SCOPED_TRACE(fmt::format("{} x {} {}", rows, cols, dtype));
      staged += run(workload("softmax", rows, cols, dtype)).staged ? 1 : 0;
      staged += run(workload("masked_softmax", rows, cols, dtype)).staged ? 1 : 0;
      staged += run(workload("residual_norm", rows, cols, dtype)).staged ? 1 : 0;
      staged += run(workload("cross_entropy", rows, cols, dtype)).staged ? 1 : 0;
    }
  EXPECT_GE(staged, 30);
}

/// Of two results, of which one is made of what the other's place had, and of a reduction that reads the
/// elements again when the first result is there.
TEST(StagedRows, ResultsLeaveWhatOthersStillRead) {
  SKIP_WITHOUT_COMPILER();
  const Moved moved = run(graph_of(R"(HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[40000,33] parameter(0)
  y = f32[40000,33] parameter(1)
  zero = f32[] constant(0)
  e = f32[40000,33] exponential(x)
  s = f32[40000] reduce(e, zero), dimensions={1}, to_apply=sum
  b = f32[40000,33] broadcast(s), dimensions={0}
  d = f32[40000,33] divide(e, b)
  p = f32[40000,33] multiply(d, y)
  t = f32[40000] reduce(p, zero), dimensions={1}, to_apply=sum
  c = f32[40000,33] broadcast(t), dimensions={0}
  q = f32[40000,33] subtract(x, c)
  ROOT r = (f32[40000,33], f32[40000,33], f32[40000]) tuple(d, q, t)
}
)"));
  EXPECT_TRUE(moved.staged);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
