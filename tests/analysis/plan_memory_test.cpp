#include "analysis/plan/plan_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/plan/control_flow.h"
#include "analysis/plan/memory_text.h"
#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;

constexpr std::int64_t kOne = 64 * 64 * 4;

/// Calls one after the other: p and a, then a and b, then b and the result; never three at once.
Graph calls() {
  return testing::graph_of(
      "p = f32[64,64] parameter(0)\n"
      "a = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "n = f32[4096] reshape(a)\n"
      "m = f32[64,64] reshape(n)\n"
      "b = f32[64,64] dot(m, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "ROOT c = f32[64,64] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
}

TEST(PlanMemory, BuffersCountFromTheirFirstStepToTheirLast) {
  const Graph graph = calls();
  const Computation& entry = graph.entry_computation();
  const FusionPlan plan = make_plan(graph, device("v100"), "astitch");
  const PlanMemory memory = plan_memory(graph, plan);
  ASSERT_EQ(memory.buffers.size(), 4u);
  EXPECT_EQ(memory.peak_bytes, 2 * kOne);
  EXPECT_EQ(memory.peak_step, 0u);
  for (const PlanMemory::Step& step : memory.steps) EXPECT_EQ(step.buffers + step.beside, 2 * kOne);
  const BufferLife& a = memory.buffers[1];
  EXPECT_EQ(entry.node(a.owner).name, "a");
  EXPECT_EQ(a.first, 0u);
  EXPECT_EQ(a.last, 1u);
  EXPECT_EQ(a.bytes, kOne);
  EXPECT_FALSE(a.aliases.empty()) << "reshapes are other names of its values";
  EXPECT_EQ(role_of_buffer(entry, memory, memory.buffers[0]), "parameter");
  EXPECT_EQ(role_of_buffer(entry, memory, a), "value");
  EXPECT_EQ(role_of_buffer(entry, memory, memory.buffers[3]), "result");
  EXPECT_EQ(memory.buffers[3].last, memory.steps.size());
  EXPECT_THAT(to_text(graph, plan, memory), HasSubstr("peak 32.0 KiB (modelled) at step 0, lib:a"));
}

TEST(PlanMemory, ScratchOfKernelsIsBesideTheirBuffers) {
  const Graph fig7 = testing::dataset("fig7");
  FusionPlan plan = make_plan(fig7, device("v100"), "astitch");
  const std::int64_t before = plan_memory(fig7, plan).peak_bytes;
  for (KernelPlan& kernel : plan.kernels) kernel.launch.scratch_bytes += 1000;
  EXPECT_EQ(plan_memory(fig7, plan).peak_bytes, before + 1000);
}

TEST(PlanMemory, LoopsTakeWhatTheirBodiesTakeAndSoDoTheLoopsInThem) {
  // The inner body's one wide value is the most that there is at once.
  const Graph graph = testing::graph_of(R"(HloModule nested
add { p = f32[] parameter(0)  q = f32[] parameter(1)  ROOT s = f32[] add(p, q) }
inner_cond { c = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(3)  ROOT lt = pred[] compare(i, n), direction=LT }
inner { b = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(b), index=0
  v = f32[8] get-tuple-element(b), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  w = f32[8,4096] broadcast(v), dimensions={0}
  d = f32[8,8] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  z = f32[] constant(0)  s = f32[8] reduce(d, z), dimensions={1}, to_apply=add
  ROOT t = (s32[], f32[8]) tuple(j, s) }
outer_cond { c = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(5)  ROOT lt = pred[] compare(i, n), direction=LT }
outer { b = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(b), index=0
  v = f32[8] get-tuple-element(b), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  zero = s32[] constant(0)  t = (s32[], f32[8]) tuple(zero, v)
  loop = (s32[], f32[8]) while(t), condition=inner_cond, body=inner
  w = f32[8] get-tuple-element(loop), index=1
  ROOT r = (s32[], f32[8]) tuple(j, w) }
ENTRY main { x = f32[8] parameter(0)  zero = s32[] constant(0)  t = (s32[], f32[8]) tuple(zero, x)
  loop = (s32[], f32[8]) while(t), condition=outer_cond, body=outer
  ROOT r = f32[8] get-tuple-element(loop), index=1 })");
  const FusionPlan plan = make_plan(graph, device("v100"), "unfused");
  const PlanMemory memory = plan_memory(graph, plan);
  EXPECT_GE(memory.peak_bytes, 8 * 4096 * 4);
  EXPECT_LT(memory.peak_bytes, 2 * 8 * 4096 * 4);
  EXPECT_GT(plan_memory(graph, plan, true).peak_bytes, memory.peak_bytes) << "the host's tuples";
}

}  // namespace TEST_FILE
}  // namespace stitchwork
