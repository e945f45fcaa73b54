#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/plan/assemble.h"
#include "analysis/planners/fusionstitching/kernel.h"
#include "analysis/planners/fusionstitching/options.h"
#include "analysis/verify/verify.h"
#include "tests/support/graphs.h"

namespace stitchwork::fusionstitching {
namespace TEST_FILE {

using testing::graph_of;
using testing::op;

constexpr const char* kSoftmax =
    "p = f32[64,96] parameter(0)\n z = f32[] constant(0)\n m = f32[64] reduce(p, z), dimensions={1}, "
    "to_apply=max\n"
    "b = f32[64,96] broadcast(m), dimensions={0}\n s = f32[64,96] subtract(p, b)\n e = f32[64,96] "
    "exponential(s)\n"
    "r = f32[64] reduce(e, z), dimensions={1}, to_apply=sum\n c = f32[64,96] broadcast(r), dimensions={0}\n"
    "ROOT d = f32[64,96] divide(e, c)";

/// Softmax in `blocks` blocks of 128 threads, values as the papers put them.
FusionPlan softmax_plan(const Graph& graph, std::int64_t blocks) {
  const Computation& computation = graph.entry_computation();
  Stitched stitched;
  for (const Node& node : computation.nodes)
    if (node.op != Op::kParameter && node.op != Op::kConstant) stitched.fusion.ops.push_back(node.id);
  stitched.fusion.roots = {computation.root};
  stitched.block = 128;
  const auto chunk = [&](NodeId id) { return computation.node(id).shape.elements_count() / blocks; };
  const InPlace never = [](NodeId, NodeId, const IsShared&) { return false; };
  stitched.slots = share(computation, stitched.fusion,
                         requests(computation, stitched.fusion, chunk, computation.users()), never, true);
  for (const char* name : {"m", "e", "r", "d"}) {
    const Node& node = computation.node(op(graph, name));
    stitched.loops.push_back({node.id, {}, chunk_mapping(computation, node, chunk(node.id), 128, 1), 0});
  }
  return assemble(graph, device("v100"), "by hand", {stitched_kernel(computation, stitched)});
}

TEST(FsKernel, EveryStitchedOpHasALoopAndEverythingElseIsInlined) {
  const Graph graph = graph_of(kSoftmax);
  const FusionPlan plan = softmax_plan(graph, 16);
  const KernelPlan& kernel = plan.kernels.at(0);
  EXPECT_EQ(kernel.groups.size(), 4u);
  EXPECT_EQ(kernel.launch.grid, 16);
  EXPECT_EQ(kernel.schemes.at(op(graph, "e")), Scheme::kRegional);
  EXPECT_EQ(kernel.schemes.at(op(graph, "s")), Scheme::kLocal);
  EXPECT_EQ(kernel.schemes.at(op(graph, "d")), Scheme::kIndependent);
  EXPECT_THAT(kernel.groups[1].ops, ::testing::ElementsAre(op(graph, "b"), op(graph, "s"), op(graph, "e")));
}

TEST(FsKernel, VerifyAcceptsItHoweverManyBlocksThereAre) {
  const Graph graph = graph_of(kSoftmax);
  for (const std::int64_t blocks : {1, 2, 4, 8, 16, 32, 64}) {
    const auto problems = verify(graph, device("v100"), softmax_plan(graph, blocks));
    EXPECT_TRUE(problems.empty()) << blocks << ": " << problems.front().why;
  }
}

TEST(FsKernel, RowsAreSharedByWarpsShortOnesByThreadsColumnsByResults) {
  const Graph graph = graph_of(
      "p = f32[64,96] parameter(0)\n q = f32[64,8] parameter(1)\n z = f32[] constant(0)\n"
      "a = f32[64] reduce(p, z), dimensions={1}, to_apply=sum\n b = f32[64] reduce(q, z), dimensions={1}, "
      "to_apply=sum\n"
      "c = f32[96] reduce(p, z), dimensions={0}, to_apply=sum\n ROOT t = (f32[64], f32[64], f32[96]) "
      "tuple(a, b, c)");
  const Computation& computation = graph.entry_computation();
  const auto mapped = [&](const char* name, std::int64_t chunk, int threads, int warps) {
    return chunk_mapping(computation, computation.node(op(graph, name)), chunk, threads, warps);
  };
  EXPECT_EQ(threads_a_row(mapped("a", 4, 128, 2).mapping), 64);
  EXPECT_EQ(threads_a_row(mapped("a", 4, 16, 1).mapping), 16);  // no more than the block has
  EXPECT_TRUE(is<mapping::OneThread>(mapped("b", 4, 128, 1).mapping));
  const Dealt columns = mapped("c", 32, 128, 1);
  EXPECT_TRUE(is<mapping::Columns>(columns.mapping));
  EXPECT_EQ(columns.deal.tasks, 3);
  EXPECT_EQ(row_warps(computation, computation.node(op(graph, "a")), 256), (std::vector<int>{1, 2, 4, 8}));
  EXPECT_EQ(row_warps(computation, computation.node(op(graph, "c")), 256), std::vector<int>{1});
}

TEST(FsOptions, TheDevicesLimitLeavesRoomForReductions) {
  Options options;
  EXPECT_EQ(shared_limit(options, device("v100"), 20480), 20480);
  options.device_shared_limit = true;
  EXPECT_EQ(shared_limit(options, device("v100"), 20480), 49152 - 8192);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
