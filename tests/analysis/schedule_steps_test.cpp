// Steps of task loops, and what finds which things belong together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/schedule/steps.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using testing::graph_of;

TEST(DisjointSets, AreNamedByTheirLeastKeyWhateverTheOrderOfJoining) {
  constexpr int kKeys = 60;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    DisjointSets<int> sets;
    std::vector<int> least(kKeys);  // by hand: relabelled at every join
    for (int key = 0; key < kKeys; ++key) least[static_cast<std::size_t>(key)] = key;
    for (int joins = 0; joins < 40; ++joins) {
      const int a = static_cast<int>(random() % kKeys), b = static_cast<int>(random() % kKeys);
      sets.join(a, b);
      const int x = least[static_cast<std::size_t>(a)], y = least[static_cast<std::size_t>(b)];
      for (int& name : least)
        if (name == std::max(x, y)) name = std::min(x, y);
      for (int key = 0; key < kKeys; ++key)
        ASSERT_EQ(sets.find(key), least[static_cast<std::size_t>(key)]) << "seed " << seed;
    }
  }
}

TEST(TaskSteps, AReaderComesAStepAfterWhatItReadsAndInItsLoop) {
  TaskSteps steps;
  steps.add(1, 4, {});
  steps.add(2, 3, {});
  steps.add(3, 2, {1, 2});
  steps.add(4, 1, {3});
  steps.add(5, 4, {1});
  steps.add(6, 0, {});
  EXPECT_EQ(steps.at(1).step, 0);
  EXPECT_EQ(steps.at(3).step, 1);
  EXPECT_EQ(steps.at(4).step, 2);
  EXPECT_EQ(steps.at(5).step, 1);
  for (const int group : {1, 2, 3, 4}) EXPECT_EQ(steps.loop(group), 1);
  EXPECT_EQ(steps.loop(0), 0);
  EXPECT_EQ(steps.at(1).last, 1);
  EXPECT_EQ(steps.at(1).last_reader, 3);  // the first of those in the last step
  EXPECT_EQ(steps.at(6).last_reader, kNoNode);
}

TEST(SharedReads, GoThroughWhatIsComputedInItsPlaceAndNoFurther) {
  const Graph graph = graph_of(R"(
    p = f32[4] parameter(0)
    a = f32[4] exponential(p)
    b = f32[4] tanh(a)
    c = f32[4] negate(b)
    d = f32[4] add(c, a)
    ROOT e = f32[4] multiply(d, p))");
  const Computation& entry = graph.entry_computation();
  const auto reads = [&](std::set<std::string> shared, std::set<std::string> stored) {
    std::vector<std::string> names;
    for (const NodeId op : shared_reads(entry, entry.node(entry.find("e")).operands, [&](NodeId id) {
           const std::string& name = entry.node(id).name;
           return shared.contains(name)                  ? Had::kShared
                  : stored.contains(name) || name == "p" ? Had::kStored
                                                         : Had::kComputed;
         }))
      names.push_back(entry.node(op).name);
    return names;
  };
  EXPECT_THAT(reads({"a"}, {}), ElementsAre("a"));
  EXPECT_THAT(reads({"a", "b"}, {}), ElementsAre("a", "b"));
  EXPECT_THAT(reads({"a", "c"}, {"d"}), ElementsAre());
  EXPECT_THAT(reads({"a", "d"}, {}), ElementsAre("d"));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
