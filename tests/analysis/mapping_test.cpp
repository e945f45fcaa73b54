// Mapping and Deal: what a plan's fields say, and what they cannot.
#include "analysis/plan/mapping.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "analysis/planners/planner.h"
#include "tests/support/graphs.h"
#include "tests/support/mapping_fields.h"
#include "tests/support/random_mappings.h"

namespace stitchwork {
namespace TEST_FILE {

TEST(Mappings, OfPlansAreTheirFields) {
  int seen = 0;
  for (const char* model :
       {"fig5", "fig7", "row_750000x32", "row_64x30000", "column_sum", "softmax", "layer_norm",
        "layer_norm_grad", "attention", "mlp_training", "remote_trap", "adam_tiny", "rotary",
        "rotary_interleaved", "gelu", "bert_layer", "dien_tiny", "transformer_tiny", "bert_train_tiny"})
    for (const char* planner : {"astitch", "auto", "xla", "tvm", "unfused"})
      for (const char* id : {"v100", "h200"}) {
        const Graph graph = testing::dataset(model);
        for (const KernelPlan& kernel : make_plan(graph, device(id), planner, {}).kernels)
          for (const Group& group : kernel.groups) {
            const Verdict verdict = legal(group.mapping, group.deal);
            EXPECT_TRUE(verdict) << model << " " << planner << " " << id << ": " << verdict.why;
            ++seen;
          }
      }
  EXPECT_GT(seen, 1000);
}

using testing::Combine, testing::MappingFields, testing::MappingKind;

TEST(Mappings, DrawnFromASeedAreTheirFields) {
  testing::MappingDraw draw(7);
  for (int i = 0; i < 10'000; ++i) {
    const auto [mapping, deal, block] = draw.draw();
    const Verdict verdict = legal(mapping, deal);
    ASSERT_TRUE(verdict) << to_text(mapping, deal) << ": " << verdict.why;
    const Dealt read = MappingFields(mapping, deal);
    ASSERT_TRUE(read.mapping == mapping) << to_text(mapping, deal);
    ASSERT_EQ(read.deal, deal) << to_text(mapping, deal);
  }
}

MappingFields rows() {
  return {mapping::Rows{64, 256, mapping::Lanes{32, 4, {4, 2}, std::nullopt}}, {16, 8, 0, 1}};
}

TEST(Mappings, FieldsThatNoneHasAreRefusedWhenRead) {
  using M = MappingFields;
  const std::vector<std::pair<const char*, std::function<void(M&)>>> wrong = {
      {"mapping.unroll: 0 is out of range", [](M& m) { m.unroll = 0; }},
      {"mapping.cols: -1 is out of range", [](M& m) { m.cols = -1; }},
      {"mapping.cluster: 0 is out of range", [](M& m) { m.cluster = 0; }},
      {"mapping.split: beside its other fields a row_pack mapping has 1", [](M& m) { m.split = 2; }},
      {"mapping.combine: ", [](M& m) { m.combine = Combine::kAtomic; }},
      {"mapping.stages: ", [](M& m) { m.stages = 1; }},
      {"mapping.bulk: ", [](M& m) { m.bulk = true; }},
      {"mapping.bulk: ", [](M& m) { m.staged = m.bulk = true; }},
      {"mapping.rows_per_block: ", [](M& m) { m.cluster = 2; }},  // several rows at a time
      {"mapping.threads_per_row: ", [](M& m) { m.kind = MappingKind::kRowSerial; }},
      {"mapping.cols: ", [](M& m) { m.kind = MappingKind::kElementwise; }},
      {"mapping.split: ", [](M& m) { m.kind = MappingKind::kTile; }},
      {"mapping.rows_per_block: ", [](M& m) { m.kind = MappingKind::kRowSplit; }},
      {"mapping.tasks_per_block: ", [](M& m) { m.tasks_per_block = 3; }},
      {"mapping.blocks: ",
       [](M& m) { m.rows_per_block = 1, m.cluster = 2, m.blocks = 9, m.tasks_per_block = 4; }},
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    MappingFields m = rows();
    wrong[i].second(m);
    try {
      m.dealt();
      ADD_FAILURE() << i << " is read";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(wrong[i].first), std::string::npos) << i << ": " << what;
    }
  }
}

TEST(Mappings, NumbersThatDoNotAgreeAreRefusedInOneLine) {
  using M = MappingFields;
  const std::vector<std::pair<const char*, std::function<void(M&)>>> wrong = {
      {"mapping.threads", [](M& m) { m.threads_per_row = 24; }},
      {"mapping.staged", [](M& m) { m.staged = true; }},  // several rows, in vectors
      {"mapping.staged", [](M& m) { m.staged = true, m.vector = 1, m.stages = 3; }},
      {"mapping.tasks", [](M& m) { m.rows = 70; }},
      {"mapping.blocks", [](M& m) { m.blocks = 17, m.tasks_per_block = 1; }},
      {"mapping.vector", [](M& m) { m.vector = 3; }},
      {"mapping.vector", [](M& m) { m.unroll = 17; }},
  };
  const Dealt right = rows();
  ASSERT_TRUE(legal(right.mapping, right.deal)) << legal(right.mapping, right.deal).why;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    MappingFields m = rows();
    wrong[i].second(m);
    const Dealt dealt = m;
    const Verdict verdict = legal(dealt.mapping, dealt.deal);
    EXPECT_FALSE(verdict) << i;
    EXPECT_EQ(verdict.rule, wrong[i].first) << i << ": " << verdict.why;
    EXPECT_EQ(verdict.why.find('\n'), std::string::npos) << verdict.why;
  }
  EXPECT_EQ(legal(right.mapping, {16, 8, 0, 2}).rule, "mapping.blocks");  // to clusters, but it has none
  EXPECT_EQ(legal(right.mapping, {16, 0, 0, 1}).rule, "mapping.range");
}

TEST(Deals, GiveEveryTaskToOneTaker) {
  for (const std::int64_t tasks : {1, 7, 64, 1000})
    for (const std::int64_t takers : {1, 3, 7}) {
      if (takers > tasks) continue;
      const Deal deal{tasks, takers, 2, 4};
      std::int64_t next = 0, most = 0;
      for (std::int64_t t = 0; t < takers; ++t) {
        const std::int64_t first = t * tasks / takers, end = (t + 1) * tasks / takers;
        EXPECT_EQ(first, next);
        most = std::max(most, end - first);
        next = end;
      }
      EXPECT_EQ(next, tasks);
      EXPECT_EQ(deal.most_tasks(), most);
      EXPECT_EQ(deal.end_block(), 2 + 4 * takers);
    }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
