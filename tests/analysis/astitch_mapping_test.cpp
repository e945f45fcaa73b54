#include <gtest/gtest.h>

#include "analysis/stitching/mapping.h"
#include "tests/support/mapping_fields.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

constexpr MappingLimits kV100{1024, 160, true, true};

TEST(AstitchMapping, Figure8aPacksShortRows) {
  const testing::MappingFields m = map_row_reduction(750000, 32, kV100);
  EXPECT_EQ(m.kind, testing::MappingKind::kRowPack);
  EXPECT_EQ(m.rows_per_block, 32);
  EXPECT_EQ(m.threads_per_row, 32);
  EXPECT_EQ(m.tasks, 23438);
  EXPECT_EQ(m.tasks_per_block, 147);
  EXPECT_EQ(m.blocks, 160);
}

TEST(AstitchMapping, Figure8bSplitsFewLongRows) {
  const testing::MappingFields m = map_row_reduction(64, 30000, kV100);
  EXPECT_EQ(m.kind, testing::MappingKind::kRowSplit);
  EXPECT_EQ(m.split, 2);
  EXPECT_EQ(m.combine, testing::Combine::kPartials);
  EXPECT_EQ(m.blocks, 128);
}

TEST(AstitchMapping, Fig7sReductions) {
  const testing::MappingFields first = map_row_reduction(4096, 256, kV100);
  EXPECT_EQ(first.rows_per_block, 4);
  EXPECT_EQ(first.tasks, 1024);
  EXPECT_EQ(first.tasks_per_block, 7);
  EXPECT_EQ(first.blocks, 147);
  EXPECT_EQ(map_row_reduction(64, 4096, kV100).deal.blocks(), 128);
}

TEST(AstitchMapping, ARowIsNotSplitFinerThanItsColumnsOrTheWaveAllow) {
  EXPECT_EQ(segments(map_row_reduction(100, 5000, kV100).mapping), 1);  // floor(160 / 100)
  EXPECT_EQ(segments(map_row_reduction(1, 5000, kV100).mapping), 5);    // ceil(5000 / 1024)
  EXPECT_EQ(segments(map_row_reduction(1, 1024, kV100).mapping), 1);    // not longer than 1024
  EXPECT_EQ(segments(map_row_reduction(160, 100000, kV100).mapping), 1);
}

TEST(AstitchMapping, ShortRowsInPlentyTakeAThreadEach) {
  EXPECT_EQ(stitchwork::name(map_row_reduction(32 * 160, 16, kV100).mapping), "row_serial");
  EXPECT_EQ(stitchwork::name(map_row_reduction(32 * 160 - 1, 16, kV100).mapping), "row_pack");
  EXPECT_EQ(stitchwork::name(map_row_reduction(32 * 160, 17, kV100).mapping), "row_pack");
}

TEST(AstitchMapping, ColumnReductionsReadWholeLinesAndSplitTheirColumns) {
  const testing::MappingFields m = map_column_reduction(1024, 8192, kV100);
  EXPECT_EQ(m.kind, testing::MappingKind::kColumn);
  EXPECT_EQ(m.rows_per_block, 32);
  EXPECT_EQ(m.threads_per_row, 32);
  EXPECT_EQ(m.split, 5);
  EXPECT_EQ(m.blocks, 160);
  EXPECT_EQ(task_rows(map_column_reduction(100000, 4, kV100).mapping), 1024);
}

TEST(AstitchMapping, WithoutAdaptationABlockTakesOneRow) {
  const MappingLimits plain{32, 2560, false, false};
  const testing::MappingFields m = map_row_reduction(750000, 32, plain);
  EXPECT_EQ(m.blocks, 750000);
  EXPECT_EQ(m.rows_per_block, 1);
  EXPECT_EQ(map_row_reduction(64, 30000, {1024, 160, false, false}).deal.blocks(), 64);
}

TEST(AstitchMapping, AlongsideCoversTheSameShareOfEachTask) {
  const testing::MappingFields rows = map_row_reduction(4096, 256, kV100);
  const testing::MappingFields m = map_alongside(4096 * 10, rows, rows.deal());
  EXPECT_EQ(m.rows_per_block, 40);
  EXPECT_EQ(m.tasks, rows.tasks);
  EXPECT_EQ(m.blocks, rows.blocks);
}

TEST(AstitchMapping, EveryShapeIsCoveredWithinOneWave) {
  for (const std::int64_t rows : {1, 2, 31, 159, 160, 161, 1000, 4097, 750000}) {
    for (const std::int64_t cols : {1, 7, 16, 32, 33, 1000, 1024, 1025, 30000}) {
      for (const testing::MappingFields m :
           {map_row_reduction(rows, cols, kV100), map_column_reduction(rows, cols, kV100),
            map_elementwise(rows * cols, kV100)}) {
        SCOPED_TRACE(to_text(m));
        EXPECT_LE(m.blocks, 160);
        EXPECT_GE(m.tasks / m.split * m.rows_per_block, m.rows);
        EXPECT_EQ(m.tasks_per_block, (m.tasks + m.blocks - 1) / m.blocks);
        EXPECT_LE(m.split, std::max<std::int64_t>(1, m.cols));
      }
    }
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
