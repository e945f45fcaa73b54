// Staged rows that every thread copies vectors of: for one task at a time or for those ahead, of any size and
// type.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "analysis/schedule/tiles.h"
#include "codegen/compile/ptx_target.h"
#include "tests/codegen/staged_plans.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::expect_right;
using testing::graph_of;
using testing::Ran;
using testing::restage;
using testing::staged;
using testing::workload_of;

FusionPlan planned(const Graph& graph, const std::string& target = "h200",
                   const std::string& copies = "cp_async") {
  return testing::planned(graph, target, copies);
}

TEST(StagedCopies, AreOfDevicesThatHaveThem) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = workload_of("softmax", 40000, 33, "f32");
  for (const char* target : {"a100-sxm-80", "h200"}) {
    SCOPED_TRACE(target);
    const FusionPlan plan = planned(graph, target);
    ASSERT_NE(staged(plan), std::nullopt);
    EXPECT_GE(staged(plan)->stages, 1);
    EXPECT_THAT(expect_right(graph, plan).cuda, ::testing::HasSubstr("sw_copy_async<16>("));
  }
  const FusionPlan old = planned(graph, "v100-sxm2"), off = planned(graph, "h200", "off");
  ASSERT_NE(staged(old), std::nullopt);
  for (const FusionPlan* plan : {&old, &off}) {
    SCOPED_TRACE(plan->device);
    if (staged(*plan) != std::nullopt) {
      EXPECT_EQ(staged(*plan)->stages, 0);
    }
    EXPECT_THAT(expect_right(graph, *plan).cuda, ::testing::Not(::testing::HasSubstr("sw_copy")));
  }
}

TEST(StagedCopies, AreThoseOfSm80ByEveryCompiler) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = workload_of("layer_norm", 40013, 33, "f32");
  const FusionPlan plan = planned(graph, "a100-sxm-80");
  ASSERT_NE(staged(plan), std::nullopt);
  for (const std::string& compiler : testing::installed_compilers())
    EXPECT_EQ(least_architecture(expect_right(graph, plan, compiler).ptx), 80) << compiler;
}

/// One task a block, some, and fewer than stages; the last task, and the array's last vector, in part.
TEST(StagedCopies, AreRightForAnyNumberOfTasks) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = testing::eighth_of_h200();
  int checked = 0;
  for (const char* name : {"softmax", "masked_softmax", "layer_norm", "cross_entropy", "residual_norm"})
    for (const char* dtype : {"f32", "bf16"})
      for (const auto& [rows, cols] : {std::pair{2503, 33}, std::pair{2240, 35}}) {
        const Graph graph = workload_of(name, rows, cols, dtype);
        const FusionPlan plan = testing::planned(graph, target);
        if (staged(plan) == std::nullopt) continue;
        for (const auto& [stages, tasks] : {std::pair{0, 1}, std::pair{1, 1}, std::pair{1, 3},
                                            std::pair{2, 2}, std::pair{2, 5}, std::pair{3, 4}}) {
          SCOPED_TRACE(fmt::format("{} {}x{} {}, {} stages, {} tasks a block", name, rows, cols, dtype,
                                   stages, tasks));
          FusionPlan changed = plan;
          ASSERT_TRUE(restage(graph, changed, stages, tasks, stages > 1 ? 4 : 1));
          if (changed.kernels[0].launch.shared_bytes > target.shared_bytes_per_block_default) continue;
          expect_right(graph, target, changed);
          ++checked;
        }
      }
  EXPECT_GE(checked, 80);
}

TEST(StagedCopies, AskForTasksAheadWhileOneIsComputed) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = workload_of("softmax", 33792, 33, "bf16");
  FusionPlan one = planned(graph), two = one;
  ASSERT_NE(staged(one), std::nullopt);
  ASSERT_TRUE(restage(graph, one, 1, 8));
  ASSERT_TRUE(restage(graph, two, 2, 8));
  const Ran alone = expect_right(graph, one), ahead = expect_right(graph, two);
  EXPECT_THAT(ahead.cuda, ::testing::HasSubstr("sw_wait_for_copies<1>();"));
  // Of eight waits the last has its own task's alone.
  EXPECT_NEAR(ahead.bytes_in_flight / alone.bytes_in_flight, 15.0 / 8, 0.1);
  EXPECT_LE(ahead.load_spread, 1.05);
}

/// Phases of a kernel with grid barriers each have copies of their own, and what an earlier one stored is
/// among them.
TEST(StagedCopies, OfGradients) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = testing::eighth_of_h200();
  int checked = 0;
  for (const char* name : {"layer_norm_grad", "rms_norm_grad"})
    for (const char* dtype : {"f32", "bf16"}) {
      const Graph graph = workload_of(name, 4691, 33, dtype);
      const FusionPlan plan = testing::planned(graph, target);
      if (staged(plan) == std::nullopt) continue;
      for (const int stages : {0, 1, 2}) {
        SCOPED_TRACE(fmt::format("{} {}, {} stages", name, dtype, stages));
        FusionPlan changed = plan;
        ASSERT_TRUE(restage(graph, changed, stages, 0));
        if (changed.kernels[0].launch.shared_bytes > target.shared_bytes_per_block_default) continue;
        expect_right(graph, target, changed);
        ++checked;
      }
    }
  EXPECT_GE(checked, 4);
}

/// Bytes, of which a vector is 16 elements, beside floats; and 8-byte elements.
TEST(StagedCopies, OfAnyElements) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = testing::eighth_of_h200();
  for (const char* dtype : {"s8", "f64", "f16"})
    for (const int stages : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} {}", dtype, stages));
      const Graph graph = graph_of(fmt::format(R"(HloModule m
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  x = {0}[3751,33] parameter(0)
  y = f32[3751,33] parameter(1)
  zero = f32[] constant(0)
  f = f32[3751,33] convert(x)
  p = f32[3751,33] multiply(f, y)
  s = f32[3751] reduce(p, zero), dimensions={{1}}, to_apply=sum
  b = f32[3751,33] broadcast(s), dimensions={{0}}
  ROOT d = f32[3751,33] subtract(p, b)
}}
)",
                                               dtype));
      FusionPlan plan = testing::planned(graph, target);
      ASSERT_NE(staged(plan), std::nullopt);
      ASSERT_TRUE(restage(graph, plan, stages, 4, 4));
      expect_right(graph, target, plan);
    }
}

TEST(StagedCopies, StayWhenAPlanIsSaved) {
  const Graph graph = workload_of("softmax", 40000, 33, "bf16");
  FusionPlan plan = planned(graph);
  ASSERT_NE(staged(plan), std::nullopt);
  ASSERT_TRUE(restage(graph, plan, 2, 4));
  const FusionPlan read = plan_from_json(graph, plan_to_json(graph, plan).dump(), "plan.json");
  EXPECT_EQ(to_text(graph, read), to_text(graph, plan));
  EXPECT_EQ(*staged(read), *staged(plan));
  EXPECT_EQ(read.kernels[0].tiles[0].stages, 2);
  EXPECT_THAT(to_text(graph, plan), ::testing::HasSubstr("staged by copies for 2 tasks"));
}

TEST(StagedCopies, ThatCannotBeAreFound) {
  const Graph graph = workload_of("softmax", 40000, 33, "bf16");
  FusionPlan plan = planned(graph);
  ASSERT_NE(staged(plan), std::nullopt);
  ASSERT_TRUE(restage(graph, plan, 2, 4));
  ASSERT_TRUE(verify(graph, device("h200"), plan).empty());
  const auto rules = [&](const FusionPlan& wrong, const char* target = "h200") {
    std::vector<std::string> found;
    for (const Verdict& problem : verify(graph, device(target), wrong)) found.push_back(problem.rule);
    return found;
  };
  FusionPlan wrong = plan;
  wrong.device = "v100-sxm2";
  EXPECT_THAT(rules(wrong, "v100-sxm2"), ::testing::Contains("verify.mapping.staged"));
  wrong = plan;
  testing::edit_mapping(wrong.kernels[0].groups[0], [](auto& m) { m.stages = 5; });  // of four tasks
  EXPECT_THAT(rules(wrong), ::testing::Contains("verify.mapping.staged"));
  EXPECT_THROW(testing::edit_mapping(wrong.kernels[0].groups[0], [](auto& m) { m.staged = false; }), Error);
  wrong = plan;
  for (Tile& tile : wrong.kernels[0].tiles) tile.stages = 1;  // copied over what is computed from
  EXPECT_THAT(rules(wrong), ::testing::Contains("verify.tile"));
  wrong = plan;
  for (Tile& tile : wrong.kernels[0].tiles) tile.bytes /= 2;
  EXPECT_THAT(rules(wrong), ::testing::Contains("verify.slot"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
