#include <gtest/gtest.h>

#include "analysis/planners/fusionstitching/locality.h"
#include "tests/support/graphs.h"

namespace stitchwork::fusionstitching {
namespace TEST_FILE {

using enum ScheduleType;

std::optional<Schedule> covering(const std::string& text, const Schedule& schedule) {
  const Graph graph = testing::graph_of(text);
  const Computation& computation = graph.entry_computation();
  return covering_schedule(computation, computation.node(computation.root), 0, schedule);
}

TEST(FsLocality, RowsOfASliceOfTheMinorDimAreRowsOfItsOperand) {
  EXPECT_EQ(covering("p = f32[8,16] parameter(0)\n e = f32[8,16] tanh(p)\n"
                     "ROOT s = f32[8,4] slice(e), slice={[0:8],[4:8]}",
                     {0, 4, kRow}),
            (Schedule{0, 4, kRow}));
}

TEST(FsLocality, HalfOfTheRowsLiesInOtherChunks) {
  EXPECT_EQ(covering("p = f32[8,16] parameter(0)\n e = f32[8,16] tanh(p)\n"
                     "ROOT s = f32[4,16] slice(e), slice={[0:4],[0:16]}",
                     {0, 4, kRow}),
            std::nullopt);
}

TEST(FsLocality, ColumnsOfABroadcastVectorAreOneRangeOfIt) {
  EXPECT_EQ(covering("p = f32[96] parameter(0)\n e = f32[96] tanh(p)\n"
                     "ROOT b = f32[32,96] broadcast(e), dimensions={1}",
                     {1, 3, kColumn}),
            (Schedule{0, 3, kRow}));
}

TEST(FsLocality, WhatIsLookedUpMayLieAnywhere) {
  const std::string text =
      "p = f32[64,8] parameter(0)\n i = s32[16,1] parameter(1)\n e = f32[64,8] tanh(p)\n"
      "ROOT g = f32[16,8] gather(e, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=1, slice_sizes={1,8}";
  EXPECT_EQ(covering(text, {0, 16, kRow}), std::nullopt);
  EXPECT_EQ(covering(text, {0, 1, kRow}), (Schedule{0, 1, kRow}));
}

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
