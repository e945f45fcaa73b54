#include <gtest/gtest.h>

#include "analysis/planners/fusionstitching/schedule.h"

namespace stitchwork::fusionstitching {
namespace TEST_FILE {

using enum ScheduleType;

TEST(FsSchedule, TheSpaceIsEverySplitDimEveryDivisorAndBothTypes) {
  EXPECT_EQ(candidates({16, 64, 32}).size(), 36u);    // the dot of F18 Figure 3
  EXPECT_EQ(candidates({2, 8, 64, 64}).size(), 40u);  // its divide
  EXPECT_EQ(candidates({4096, 1024}).size(), 48u);
  EXPECT_EQ(candidates({}), std::vector<Schedule>{Schedule{}});
}

TEST(FsSchedule, OneBlockIsAlwaysThere) {
  for (const Dims& dims : {Dims{}, Dims{1}, Dims{7, 5}, Dims{0, 3}}) {
    EXPECT_EQ(candidates(dims).front(), (Schedule{0, 1, kRow}));
    EXPECT_EQ(blocks_of({0, 1, kRow}, dims), 1);
  }
}

TEST(FsSchedule, RowsCutConsecutiveElementsColumnsWhatLiesBesideEachOther) {
  const Dims dims{4, 6, 10};
  EXPECT_EQ(blocks_of({1, 3, kRow}, dims), 12);
  EXPECT_EQ(chunking({1, 3, kRow}, dims), (Chunking{12, 1, 240, 20}));
  EXPECT_EQ(blocks_of({2, 5, kColumn}, dims), 5);
  EXPECT_EQ(chunking({2, 5, kColumn}, dims), (Chunking{5, 24, 10, 2}));
  // A whole dimension and one index of what lies right of it.
  EXPECT_EQ(chunking({1, 1, kColumn}, dims), (Chunking{10, 24, 10, 1}));
  EXPECT_EQ(chunking({1, 6, kColumn}, dims), (Chunking{60, 4, 60, 1}));
}

TEST(FsSchedule, ColumnsOfSomeButNotAllAreStrided) {
  EXPECT_TRUE(is_strided({2, 2, kColumn}, {2, 3, 6, 7, 8}));
  EXPECT_FALSE(is_strided({2, 6, kColumn}, {2, 3, 6, 7, 8}));
  EXPECT_FALSE(is_strided({4, 2, kColumn}, {2, 3, 6, 7, 8}));
  EXPECT_FALSE(chunking({2, 2, kColumn}, {2, 3, 6, 7, 8}).has_value());
}

TEST(FsSchedule, ASchedulesOfSoManyBlocksIsTheOneThatSplitsTheLeastDim) {
  EXPECT_EQ(row_schedule({2, 8, 64, 64}, 16), (Schedule{1, 8, kRow}));
  EXPECT_EQ(row_schedule({2, 8, 64, 64}, 2), (Schedule{0, 2, kRow}));
  EXPECT_EQ(row_schedule({16, 64, 64}, 16), (Schedule{0, 16, kRow}));
  EXPECT_EQ(row_schedule({6, 10}, 4), std::nullopt);
  EXPECT_EQ(column_schedule({64, 96}, 3), (Schedule{1, 3, kColumn}));
  EXPECT_EQ(column_schedule({96}, 3), std::nullopt);  // that is one range
}

TEST(FsSchedule, DistinctCandidatesAreOfDifferentChunks) {
  int rows = 0;
  for (const Schedule& schedule : distinct_candidates({4096, 1024})) rows += schedule.type == kRow;
  EXPECT_EQ(rows, 23);  // 2^0 .. 2^22 blocks
}

TEST(FsSchedule, TextNamesDimPartsAndType) { EXPECT_EQ(to_text(Schedule{1, 8, kRow}), "(1,8,Row)"); }

}  // namespace TEST_FILE
}  // namespace stitchwork::fusionstitching
