// Long rows that stay in shared memory for a task, a row at a time, wherever they begin in memory.
#include "tests/support/staged_rows.h"

#include <fmt/format.h>

#include <array>

#include "analysis/schedule/tiles.h"
#include "tests/codegen/planned.h"
#include "tests/codegen/workloads.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::graph_of;
using testing::SectorSpread;
using testing::stage_single_rows;

/// A row a block, and that staged: several rows to each of three blocks, or clusters.
SectorSpread expect_right_staged(const Graph& graph, const Device& target, int cluster = 1, int vector = 1,
                                 int unroll = 1, int stages = 0) {
  PlanOptions whole_rows;
  whole_rows.knobs = {{"clusters", "off"}, {"adaptive_mapping", "off"}};
  FusionPlan plan = make_plan(graph, target, "astitch", whole_rows);
  if (plan.kernels.size() != 1 ||
      !stage_single_rows(graph, target, plan, 0, 3, cluster, vector, unroll, stages)) {
    ADD_FAILURE() << "no plan whose rows could be staged";
    return {};
  }
  return testing::sector_spread(testing::run_sanitized(graph, target, plan).run);
}

testing::MappingFields mapping_of(const FusionPlan& plan) { return plan.kernels.at(0).groups.at(0); }

Graph workload(const char* name, std::int64_t rows, std::int64_t cols, const char* dtype) {
  return graph_of(testing::workload(name).hlo({rows, cols, dtype}));
}

TEST(StagedSingleRows, AreRightWhateverTheirLengthAndType) {
  SKIP_WITHOUT_COMPILER();
  constexpr std::array kTargets = {"h200", "a100", "v100"};
  std::size_t turn = 0;  // each length and type by each device, not each workload by all
  for (const char* dtype : {"f32", "bf16", "f16"})
    for (const auto& [rows, cols] :
         {std::pair{7, 3001}, std::pair{5, 5122}, std::pair{4, 4100}, std::pair{3, 4096}, std::pair{11, 130}})
      for (const char* name : {"softmax", "masked_softmax", "cross_entropy", "layer_norm", "residual_norm"}) {
        const char* target = kTargets[turn++ % kTargets.size()];
        const int vector = rows % 2 == 0 ? 1 : 16 / (dtype == std::string("f32") ? 4 : 2);
        const int unroll = rows % 4 == 3 ? 1 : 4;
        SCOPED_TRACE(fmt::format("{} {}x{} {} on {}", name, rows, cols, dtype, target));
        expect_right_staged(workload(name, rows, cols, dtype), device(target), 1, vector, unroll);
      }
}

TEST(StagedSingleRows, AreRightWhereTheyAreCopiedAhead) {
  SKIP_WITHOUT_COMPILER();
  std::size_t turn = 0;
  for (const char* dtype : {"f32", "bf16"})
    for (const auto& [rows, cols, stages] :
         {std::tuple{7, 3001, 1}, std::tuple{10, 5122, 2}, std::tuple{12, 4100, 3}, std::tuple{9, 4096, 2}})
      for (const char* name : {"softmax", "masked_softmax", "cross_entropy", "layer_norm", "residual_norm"}) {
        const char* target = turn++ % 2 == 0 ? "h200" : "a100";
        SCOPED_TRACE(fmt::format("{} {}x{} {} on {}", name, rows, cols, dtype, target));
        const int vector = rows % 2 == 0 ? 1 : 16 / (dtype == std::string("f32") ? 4 : 2);
        expect_right_staged(workload(name, rows, cols, dtype), device(target), 1, vector, 1, stages);
      }
}

TEST(StagedSingleRows, AreCopiedAheadWhereBlocksHaveManyAndNothingComesBesideThem) {
  const Graph softmax = workload("softmax", 16384, 8192, "f32"),
              norm = workload("rms_norm", 16384, 8192, "f32");
  const Device& target = device("h200");
  const FusionPlan copied = make_plan(softmax, target, "astitch", {}),
                   other = make_plan(norm, target, "astitch", {});
  EXPECT_TRUE(stages_a_row(mapping_of(copied)));
  EXPECT_GE(mapping_of(copied).stages, 2);
  EXPECT_EQ(mapping_of(other).stages, 0);
  EXPECT_TRUE(verify(softmax, target, copied).empty());
  const std::string cuda = to_cuda(softmax, build_schedule(softmax, copied.kernels.at(0)), false);
  EXPECT_NE(cuda.find("sw_copy_bulk("), std::string::npos) << cuda;
}

TEST(StagedSingleRows, AreRightInPartsOfTheBlocksOfAClusterEach) {
  SKIP_WITHOUT_COMPILER();
  std::size_t turn = 0;
  for (const char* dtype : {"f32", "bf16"})
    for (const auto& [rows, cols] :
         {std::pair{7, 9001}, std::pair{5, 12290}, std::pair{4, 4096}, std::pair{9, 2081}})
      for (const char* name : {"softmax", "masked_softmax", "cross_entropy", "layer_norm", "residual_norm"}) {
        const int cluster = 2 << turn++ % 3;
        SCOPED_TRACE(fmt::format("{} {}x{} {} in clusters of {}", name, rows, cols, dtype, cluster));
        expect_right_staged(workload(name, rows, cols, dtype), device("h200"), cluster, rows == 7 ? 1 : 4,
                            1 << cluster / 3);
      }
}

/// Sums of columns beside those of rows, and a value a column that a block reads once: of rows whole or in
/// parts, through registers or copied for one task or some ahead, by vectors where these divide a row.
TEST(StagedSingleRows, AreSummedAcrossToo) {
  SKIP_WITHOUT_COMPILER();
  const Device& target = device("h200");
  const auto sums_across = [](const FusionPlan& plan) {
    return plan.kernels.size() == 1 &&
           std::any_of(plan.kernels[0].groups.begin(), plan.kernels[0].groups.end(),
                       [](const Group& group) { return !group.across.empty(); });
  };
  int turn = 0;
  for (const char* dtype : {"f32", "bf16", "f16"})
    for (const char* name : {"layer_norm_grad", "rms_norm_grad"})
      for (const auto& [rows, cols, vector] :
           {std::tuple{64, 1500, 4}, std::tuple{64, 3001, 1}, std::tuple{64, 1500, 1}}) {
        const Graph graph = workload(name, rows, cols, dtype);
        PlanOptions options;
        options.knobs["clusters"] = "off";
        FusionPlan plan;
        for (const int sms : {1, 2, 4})
          if (!sums_across(plan)) plan = make_plan(graph, testing::few_sms("h200", sms), "astitch", options);
        plan.device = target.id;
        ASSERT_TRUE(sums_across(plan)) << to_text(graph, plan);
        for (const auto& [cluster, stages] :
             {std::pair{1, 0}, std::pair{1, 1}, std::pair{1, 3}, std::pair{2, 2}, std::pair{4, 0},
              std::pair{4, 3}, std::pair{8, 1}}) {
          if (++turn % 2 == 0) continue;  // seven of them: each is met by every other graph
          SCOPED_TRACE(
              fmt::format("{} {}x{} {} by {} blocks, {} stages", name, rows, cols, dtype, cluster, stages));
          FusionPlan staged = plan;
          ASSERT_TRUE(testing::stage_single_rows(graph, target, staged, 0, 3, cluster, vector, 1, stages));
          EXPECT_EQ(copy_depth(staged.kernels[0].groups[0].mapping), stages);
          const SectorSpread moved =
              testing::sector_spread(testing::run_sanitized(graph, target, staged).run);
          if (stages > 0) {
            EXPECT_LE(moved.loads, 1.1);  // partials and values a column begin where they do
          }
        }
      }
}

TEST(StagedSingleRows, MoveInWholeSectorsBesideValuesOfTheColumns) {
  SKIP_WITHOUT_COMPILER();
  for (const char* dtype : {"f32", "bf16"})
    for (const char* name : {"softmax", "layer_norm", "rms_norm", "residual_norm"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, dtype));
      const SectorSpread moved = expect_right_staged(workload(name, 6, 20011, dtype), device("h200"));
      EXPECT_LE(moved.loads, 1.02);
      EXPECT_LE(moved.stores, 1.02);
    }
}

TEST(StagedSingleRows, TakeTheSharedMemoryThatIsToBeAskedFor) {
  SKIP_WITHOUT_COMPILER();
  for (const auto& [target, cols] :
       {std::pair{"h200", 57001}, std::pair{"a100", 40001}, std::pair{"v100", 23001}}) {
    SCOPED_TRACE(target);
    expect_right_staged(workload("layer_norm", 4, cols, "f32"), device(target));
  }
}

/// And where all is of whole sectors and stays in registers they are not.
TEST(StagedSingleRows, AreChosenWhereRowsBeginWithinSectorsOrRegistersDoNotHoldThem) {
  for (const auto& [name, cols, dtype, wanted] : {std::tuple{"layer_norm", 50257, "f32", true},
                                                  {"layer_norm", 50257, "bf16", true},
                                                  {"rms_norm", 50257, "f32", true},
                                                  {"softmax", 50257, "bf16", true},
                                                  {"layer_norm", 8192, "f32", false},
                                                  {"softmax", 8192, "bf16", false}}) {
    SCOPED_TRACE(fmt::format("{} of {} columns {}", name, cols, dtype));
    const Graph graph = workload(name, 512, cols, dtype);
    const FusionPlan plan = make_plan(graph, device("h200"), "astitch", {});
    EXPECT_EQ(stages_a_row(mapping_of(plan)), wanted);
    const Device& target = device("h200");
    EXPECT_TRUE(verify(graph, target, plan).empty());
    EXPECT_LE(plan.kernels[0].launch.shared_bytes, target.shared_bytes_per_block_optin);
    PlanOptions without;
    without.knobs["tiles"] = "off";
    EXPECT_FALSE(mapping_of(make_plan(graph, target, "astitch", without)).staged);
  }
}

TEST(StagedSingleRows, AreRefusedBeyondWhatABlockMayAskFor) {
  const Graph graph = workload("layer_norm", 512, 50257, "f32");
  FusionPlan plan = make_plan(graph, device("h200"), "astitch", {});
  ASSERT_TRUE(stages_a_row(mapping_of(plan)));
  plan.kernels[0].launch.shared_bytes = device("h200").shared_bytes_per_block_optin + 1;
  const std::vector<Verdict> problems = verify(graph, device("h200"), plan);
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(),
                          [](const Verdict& v) { return v.rule == "verify.shared-memory"; }));
}

/// Of bytes beside words, of an odd number of elements in all.
TEST(StagedSingleRows, OfBytesBeginBetweenWords) {
  SKIP_WITHOUT_COMPILER();
  for (const int cols : {2999, 4097, 6002})
    expect_right_staged(graph_of(fmt::format(R"(HloModule m
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  x = s8[7,{0}] parameter(0)
  y = f32[7,{0}] parameter(1)
  zero = f32[] constant(0)
  c = f32[7,{0}] convert(x)
  p = f32[7,{0}] multiply(c, y)
  s = f32[7] reduce(p, zero), dimensions={{1}}, to_apply=sum
  b = f32[7,{0}] broadcast(s), dimensions={{0}}
  d = f32[7,{0}] subtract(p, b)
  n = s8[7,{0}] negate(x)
  ROOT r = (f32[7,{0}], s8[7,{0}]) tuple(d, n)
}}
)",
                                             cols)),
                        device("h200"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
