// Mapping and Deal: what a plan's fields say, and what they cannot.
#include "analysis/schedule/mapping.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "analysis/planner.h"
#include "tests/support/graphs.h"
#include "tests/support/random_mappings.h"

namespace stitchwork {
namespace {

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
            const ThreadMapping& m = group.mapping;
            EXPECT_TRUE(legal(m)) << model << " " << planner << " " << id << ": " << legal(m).why;
            EXPECT_EQ(to_fields(to_mapping(m), to_deal(group)), m) << to_text(m);
            ++seen;
          }
      }
  EXPECT_GT(seen, 1000);
}

TEST(Mappings, DrawnFromASeedAreTheirFields) {
  testing::MappingDraw draw(7);
  for (int i = 0; i < 10'000; ++i) {
    const auto [mapping, deal, block] = draw.draw();
    const ThreadMapping fields = to_fields(mapping, deal);
    ASSERT_TRUE(legal(fields)) << to_text(fields) << ": " << legal(fields).why;
    ASSERT_TRUE(to_mapping(fields) == mapping) << to_text(fields);
    ASSERT_EQ(to_deal(fields), deal) << to_text(fields);
  }
}

ThreadMapping rows() {
  return to_fields(mapping::Rows{64, 256, mapping::Lanes{32, 4, {4, 2}, std::nullopt}}, {16, 8, 0, 1});
}

TEST(Mappings, FieldsThatNoneHasAreRefusedInOneLine) {
  using M = ThreadMapping;
  const std::vector<std::pair<const char*, std::function<void(M&)>>> wrong = {
      {"mapping.range", [](M& m) { m.unroll = 0; }},
      {"mapping.form", [](M& m) { m.split = 2; }},
      {"mapping.form", [](M& m) { m.combine = Combine::kAtomic; }},
      {"mapping.form", [](M& m) { m.stages = 1; }},
      {"mapping.form", [](M& m) { m.bulk = true; }},
      {"mapping.form", [](M& m) { m.staged = m.bulk = true; }},
      {"mapping.form", [](M& m) { m.cluster = 2; }},  // of several rows at a time
      {"mapping.form", [](M& m) { m.kind = MappingKind::kRowSerial; }},
      {"mapping.form", [](M& m) { m.kind = MappingKind::kElementwise; }},
      {"mapping.form", [](M& m) { m.kind = MappingKind::kTile; }},
      {"mapping.form", [](M& m) { m.kind = MappingKind::kRowSplit; }},
      {"mapping.threads", [](M& m) { m.threads_per_row = 24; }},
      {"mapping.staged", [](M& m) { m.staged = true; }},  // several rows, in vectors
      {"mapping.staged", [](M& m) { m.staged = true, m.vector = 1, m.stages = 3; }},
      {"mapping.tasks", [](M& m) { m.rows = 70; }},
      {"mapping.blocks", [](M& m) { m.blocks = 17; }},
      {"mapping.blocks", [](M& m) { m.tasks_per_block = 3; }},
      {"mapping.vector", [](M& m) { m.vector = 3; }},
      {"mapping.vector", [](M& m) { m.unroll = 17; }},
  };
  ASSERT_TRUE(legal(rows())) << legal(rows()).why;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    ThreadMapping m = rows();
    wrong[i].second(m);
    const Verdict verdict = legal(m);
    EXPECT_FALSE(verdict) << i;
    EXPECT_EQ(verdict.rule, wrong[i].first) << i << ": " << verdict.why;
    EXPECT_EQ(verdict.why.find('\n'), std::string::npos) << verdict.why;
  }
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

}  // namespace
}  // namespace stitchwork
