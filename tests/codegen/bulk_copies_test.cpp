// Staged rows that are copied in bulk: one thread asks for a task's range, all wait for it at an mbarrier.
#include <gmock/gmock.h>

#include <array>
#include <nlohmann/json.hpp>

#include "analysis/json/plan_json.h"
#include "analysis/schedule/tiles.h"
#include "codegen/compile/ptx_target.h"
#include "tests/codegen/staged_plans.h"
#include "tests/support/staged_rows.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::Contains;
using testing::expect_right;
using testing::graph_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::planned;
using testing::Ran;
using testing::restage;
using testing::staged;
using testing::workload_of;

TEST(BulkCopies, AreOfDevicesThatHaveThem) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = workload_of("softmax", 40000, 33, "f32");
  for (const char* target : {"h100", "h200"}) {
    SCOPED_TRACE(target);
    const FusionPlan plan = planned(graph, target);
    ASSERT_NE(staged(plan), std::nullopt);
    EXPECT_TRUE(staged(plan)->bulk);
    const Ran ran = expect_right(graph, plan);
    EXPECT_THAT(ran.cuda, HasSubstr("sw_copy_bulk("));
    EXPECT_THAT(ran.cuda, Not(HasSubstr("sw_copy_async")));
    EXPECT_GT(ran.counters.bulk_copies, 0);
  }
  const FusionPlan older = planned(graph, "a100-sxm-80"), by_threads = planned(graph, "h200", "cp_async");
  for (const FusionPlan* plan : {&older, &by_threads}) {
    SCOPED_TRACE(plan->device);
    ASSERT_NE(staged(*plan), std::nullopt);
    EXPECT_FALSE(staged(*plan)->bulk);
    EXPECT_GE(staged(*plan)->stages, 1);
  }
}

TEST(BulkCopies, AreThoseOfSm90ByEveryCompiler) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = workload_of("layer_norm", 40013, 33, "f32");
  const FusionPlan plan = planned(graph);
  ASSERT_NE(staged(plan), std::nullopt);
  for (const std::string& compiler : testing::installed_compilers())
    EXPECT_EQ(least_architecture(expect_right(graph, plan, compiler).ptx), 90) << compiler;
}

/// One task a block, some, and fewer than stages; the last task in part; arrays whose last elements fill no
/// unit of a copy, and tasks that have no others.
TEST(BulkCopies, AreRightForAnyNumberOfTasks) {
  SKIP_WITHOUT_COMPILER();
  constexpr std::array kSizes = {std::pair{2503, 33}, std::pair{2240, 35}, std::pair{2049, 37}};
  const Device& target = testing::eighth_of_h200();
  int checked = 0, with_rest = 0, workloads = 0;
  for (const char* name : {"softmax", "masked_softmax", "layer_norm", "cross_entropy", "residual_norm"})
    for (const char* dtype : {"f32", "bf16"})
      for (const int size : {workloads % 3, (workloads + 1) % 3}) {  // two of three, in turn
        const auto& [rows, cols] = kSizes[static_cast<std::size_t>(size)];
        ++workloads;
        const Graph graph = workload_of(name, rows, cols, dtype);
        const FusionPlan plan = testing::planned(graph, target);
        if (staged(plan) == std::nullopt) continue;
        for (const auto& [stages, tasks] :
             {std::pair{1, 1}, std::pair{1, 3}, std::pair{2, 2}, std::pair{2, 5}, std::pair{3, 4}}) {
          SCOPED_TRACE(fmt::format("{} {}x{} {}, {} stages, {} tasks a block", name, rows, cols, dtype,
                                   stages, tasks));
          FusionPlan changed = plan;
          ASSERT_TRUE(restage(graph, changed, stages, tasks, stages > 1 ? 4 : 1));
          ASSERT_TRUE(staged(changed)->bulk);
          if (changed.kernels[0].launch.shared_bytes > target.shared_bytes_per_block_default) continue;
          const Ran ran = expect_right(graph, target, changed);
          // Tasks of few rows may be no whole units of all that they copy.
          checked += ran.cuda.find("sw_copy_bulk(") != std::string::npos;
          with_rest += ran.cuda.find("if (task == ") != std::string::npos;
        }
      }
  EXPECT_GE(checked, 66);
  EXPECT_GE(with_rest, 13);
}

/// Phases of a kernel with grid barriers each have mbarriers of their own, in bytes that earlier ones had
/// other things in, and copy what those stored.
TEST(BulkCopies, OfGradients) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = testing::eighth_of_h200();
  int checked = 0;
  for (const char* name : {"layer_norm_grad", "rms_norm_grad"})
    for (const char* dtype : {"f32", "bf16"}) {
      const Graph graph = workload_of(name, 4691, 33, dtype);
      const FusionPlan plan = testing::planned(graph, target);
      if (staged(plan) == std::nullopt) continue;
      for (const int stages : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} {}, {} stages", name, dtype, stages));
        FusionPlan changed = plan;
        ASSERT_TRUE(restage(graph, changed, stages, 0));
        if (changed.kernels[0].launch.shared_bytes > target.shared_bytes_per_block_default) continue;
        const Ran ran = expect_right(graph, target, changed);
        EXPECT_GT(ran.counters.bulk_copies, 0);
        ++checked;
      }
    }
  EXPECT_GE(checked, 3);
}

/// Rows one by one, which begin anywhere: each copy at the sector in which its row does.
TEST(BulkCopies, OfSingleRowsWhereverTheyBegin) {
  SKIP_WITHOUT_COMPILER();
  for (const char* dtype : {"f32", "bf16", "f16"})
    for (const auto& [rows, cols, stages] :
         {std::tuple{7, 3001, 1}, std::tuple{10, 5122, 2}, std::tuple{12, 4100, 3}, std::tuple{9, 4097, 2}})
      for (const char* name : {"softmax", "masked_softmax", "cross_entropy", "layer_norm", "residual_norm"}) {
        SCOPED_TRACE(fmt::format("{} {}x{} {}, {} stages", name, rows, cols, dtype, stages));
        const Graph graph = workload_of(name, rows, cols, dtype);
        PlanOptions whole_rows;
        whole_rows.knobs = {{"clusters", "off"}, {"adaptive_mapping", "off"}};
        FusionPlan plan = make_plan(graph, device("h200"), "astitch", whole_rows);
        ASSERT_TRUE(testing::stage_single_rows(graph, device("h200"), plan, 0, 3, 1, 1, 1, stages, true));
        const Ran ran = expect_right(graph, plan);
        EXPECT_GT(ran.counters.bulk_copies, 0);
        EXPECT_LE(ran.load_spread, 1.1);
      }
}

/// Bytes, of which a unit of a copy is 16 elements, beside floats; and 8-byte elements.
TEST(BulkCopies, OfAnyElements) {
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
      EXPECT_THAT(expect_right(graph, target, plan).cuda, HasSubstr("sw_copy_bulk("));
    }
}

/// Threads compute no addresses of copies and execute none, and tasks have one block barrier less.
TEST(BulkCopies, TakeFewerInstructionsThanCopiesOfThreads) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = testing::eighth_of_h200();
  for (const char* dtype : {"f32", "bf16"})
    for (const char* name : {"softmax", "layer_norm", "cross_entropy"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, dtype));
      const Graph graph = workload_of(name, 8448, 33, dtype);
      FusionPlan bulk = testing::planned(graph, target);
      ASSERT_NE(staged(bulk), std::nullopt);
      ASSERT_TRUE(restage(graph, bulk, 2, 8));
      FusionPlan threads = bulk;
      for (Group& group : threads.kernels[0].groups)
        testing::edit_mapping(group, [](auto& m) { m.bulk = false; });
      ASSERT_TRUE(restage(graph, threads, 2, 8));
      const Ran of_bulk = expect_right(graph, target, bulk),
                of_threads = expect_right(graph, target, threads);
      EXPECT_LT(static_cast<double>(of_bulk.counters.issue_slots),
                0.97 * static_cast<double>(of_threads.counters.issue_slots));
      EXPECT_LT(of_bulk.counters.block_barriers, of_threads.counters.block_barriers);
      EXPECT_EQ(of_bulk.counters.gld_transactions, of_threads.counters.gld_transactions);
      EXPECT_NEAR(of_bulk.bytes_in_flight / of_threads.bytes_in_flight, 1, 0.1);
    }
}

/// Results go out as their inputs came in: a task has one block barrier then, or two where its results have
/// bytes of their own, which the next task stores to.
TEST(BulkCopies, BringResultsToMemory) {
  SKIP_WITHOUT_COMPILER();
  constexpr std::int64_t kRows = 33797, kTasks = 8;
  const auto of_type = [&](const char* result) {
    return graph_of(fmt::format(R"(HloModule m
max {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }}
ENTRY main {{
  x = f32[{0},33] parameter(0)
  low = f32[] constant(-inf)
  m = f32[{0}] reduce(x, low), dimensions={{1}}, to_apply=max
  b = f32[{0},33] broadcast(m), dimensions={{0}}
  d = f32[{0},33] subtract(x, b)
  ROOT r = {1}[{0},33] convert(d)
}}
)",
                                kRows, result));
  };
  for (const auto& [result, barriers] : {std::pair{"f32", 1}, std::pair{"bf16", 2}, std::pair{"f64", 2}})
    for (const int stages : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} stages", result, stages));
      const Graph graph = of_type(result);
      FusionPlan plan = planned(graph);
      ASSERT_NE(staged(plan), std::nullopt);
      ASSERT_TRUE(restage(graph, plan, stages, kTasks, 4));
      const Ran ran = expect_right(graph, plan);
      EXPECT_THAT(ran.cuda, HasSubstr("sw_store_bulk("));
      const auto tasks = static_cast<std::uint64_t>(staged(plan)->tasks);
      EXPECT_EQ(ran.counters.bulk_copies, 2 * tasks);
      // And one of each block, behind which its threads know the mbarriers.
      EXPECT_LE(ran.counters.block_barriers, static_cast<std::uint64_t>(barriers) * tasks +
                                                 2 * static_cast<std::uint64_t>(staged(plan)->blocks));
    }
}

/// A kernel that does not keep the order that copies and stores need is found out.
TEST(BulkCopies, NeedTheirFencesAndWaits) {
  SKIP_WITHOUT_COMPILER();
  const Graph graph = workload_of("softmax", 33792, 33, "f32");
  FusionPlan plan = planned(graph);
  ASSERT_NE(staged(plan), std::nullopt);
  ASSERT_TRUE(restage(graph, plan, 2, 8));
  const Device& target = device("h200");
  const testing::SanitizedRun right = testing::run_sanitized(graph, target, plan);
  const std::vector<Literal> inputs = generate_inputs(graph, 0);
  RunOptions options;
  options.sanitize = {.race = true, .init = true};
  const auto found_without = [&](const std::vector<std::string>& instructions) {
    Executable changed = right.executable;
    std::string& ptx = changed.kernels[0].ptx;
    for (const std::string& instruction : instructions) {
      const std::size_t at = ptx.find(instruction);
      EXPECT_NE(at, std::string::npos) << instruction;
      if (at != std::string::npos) ptx.insert(at, "//");
    }
    const RunResult run = run_simulated(graph, target, changed, inputs, options);
    return run.findings.empty() ? std::string() : run.findings[0].message;
  };
  // Results lie where their inputs did and the next copies come.
  EXPECT_THAT(found_without({"fence.proxy.async;"}), HasSubstr("with no fence.proxy.async in between"));
  EXPECT_THAT(found_without({"cp.async.bulk.wait_group.read"}),
              HasSubstr("with nothing that orders it before"));
  EXPECT_THAT(found_without({"mbarrier.try_wait", "@!come bra WAIT;"}),
              HasSubstr("with no wait for its mbarrier"));
}

TEST(BulkCopies, StayWhenAPlanIsSaved) {
  const Graph graph = workload_of("softmax", 40000, 33, "bf16");
  FusionPlan plan = planned(graph);
  ASSERT_NE(staged(plan), std::nullopt);
  ASSERT_TRUE(restage(graph, plan, 2, 4));
  const FusionPlan read = plan_from_json(graph, plan_to_json(graph, plan).dump(), "plan.json");
  EXPECT_EQ(*staged(read), *staged(plan));
  EXPECT_TRUE(staged(read)->bulk);
  EXPECT_THAT(to_text(graph, plan), HasSubstr("staged by bulk copies for 2 tasks"));
}

TEST(BulkCopies, ThatCannotBeAreFound) {
  const Graph graph = workload_of("softmax", 40000, 33, "bf16");
  FusionPlan plan = planned(graph);
  ASSERT_NE(staged(plan), std::nullopt);
  ASSERT_TRUE(restage(graph, plan, 2, 4));
  ASSERT_TRUE(verify(graph, device("h200"), plan).empty());
  const auto rules = [&](const FusionPlan& wrong) {
    std::vector<std::string> found;
    for (const Verdict& problem : verify(graph, device(wrong.device), wrong)) found.push_back(problem.rule);
    return found;
  };
  FusionPlan wrong = plan;
  wrong.device = "a100-sxm-80";
  EXPECT_THAT(rules(wrong), Contains("verify.mapping.staged"));
  EXPECT_THROW(testing::edit_mapping(wrong.kernels[0].groups[0], [](auto& m) { m.stages = 0; }), Error);
  // A tile without room for its mbarriers.
  wrong = plan;
  for (Tile& tile : wrong.kernels[0].tiles) tile.bytes -= 2 * kBulkUnit;
  EXPECT_THAT(rules(wrong), Contains("verify.slot"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
