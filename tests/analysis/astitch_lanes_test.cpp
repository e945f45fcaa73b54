#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "analysis/json/plan_json.h"
#include "analysis/judge/cost.h"
#include "analysis/planners/planner.h"
#include "analysis/stitching/lanes.h"
#include "analysis/verify/verify.h"
#include "tests/support/astitch_passes.h"
#include "tests/support/paper.h"

namespace stitchwork::astitch {
namespace TEST_FILE {

using Json = nlohmann::ordered_json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Independent negations, a result each, that remote stitching makes one kernel.
Graph negations(const std::vector<std::int64_t>& sizes) {
  std::string entry = "ENTRY e {\n", types, names;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    entry += fmt::format(" p{0} = f32[{1}] parameter({0})\n n{0} = f32[{1}] negate(p{0})\n", i, sizes[i]);
    types += fmt::format("{}f32[{}]", i ? ", " : "", sizes[i]);
    names += fmt::format("{}n{}", i ? ", " : "", i);
  }
  return parse(entry + fmt::format(" ROOT t = ({}) tuple({})\n}}", types, names));
}

FusionPlan plan(const Graph& graph) {
  return make_plan(graph, device("v100"), "astitch", stitchwork::testing::paper("astitch"));
}

/// First block, blocks and tasks a block of each group.
std::vector<std::vector<std::int64_t>> ranges(const KernelPlan& kernel) {
  std::vector<std::vector<std::int64_t>> result;
  for (const Group& g : kernel.groups)
    result.push_back({g.deal.first_block, g.deal.blocks(), g.deal.most_tasks()});
  return result;
}

TEST(AstitchLanes, SmallGroupsRunSideBySide) {
  const FusionPlan made = plan(negations({1024, 3000, 10}));
  ASSERT_EQ(made.kernels.size(), 1u);
  EXPECT_THAT(ranges(made.kernels[0]),
              ElementsAre(ElementsAre(0, 1, 1), ElementsAre(1, 3, 1), ElementsAre(4, 1, 1)));
  EXPECT_EQ(made.kernels[0].launch.grid, 5);
  EXPECT_EQ(made.kernels[0].groups[2].lane, 2);
}

TEST(AstitchLanes, AWaveTooSmallForAllIsSharedByWhatTheTasksCost) {
  // 600, 300 and 5 tasks on 160 blocks: no block takes more than 6 of them.
  const FusionPlan made = plan(negations({600 * 1024, 300 * 1024, 5 * 1024}));
  ASSERT_EQ(made.kernels.size(), 1u);
  EXPECT_THAT(ranges(made.kernels[0]),
              ElementsAre(ElementsAre(0, 100, 6), ElementsAre(100, 50, 6), ElementsAre(150, 1, 5)));
  EXPECT_LE(made.kernels[0].launch.grid, 160);
}

/// The loss of a classifier, an element looked up of each row, beside rows that everything reads.
TEST(AstitchLanes, WhatIsLookedUpIsNotReadWhole) {
  std::mt19937 random(11);
  for (int drawn = 0; drawn < 12; ++drawn) {
    const std::int64_t rows = 200 + random() % 3000, cols = 8000 + random() % 40000;
    SCOPED_TRACE(fmt::format("{}x{}", rows, cols));
    const Graph graph = parse(fmt::format(R"(ENTRY e {{
  x = f32[{0},{1}] parameter(0)
  at = s32[{0},2] parameter(1)
  zero = f32[] constant(0)
  e = f32[{0},{1}] exponential(x)
  s = f32[{0}] reduce(e, zero), dimensions={{1}}, to_apply=sum
  sb = f32[{0},{1}] broadcast(s), dimensions={{0}}
  y = f32[{0},{1}] divide(e, sb)
  g = f32[{0}] gather(x, at), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}
  n = f32[{0}] log(g)
  loss = f32[] reduce(n, zero), dimensions={{0}}, to_apply=sum
  lb = f32[{0},{1}] broadcast(loss), dimensions={{}}
  z = f32[{0},{1}] multiply(y, lb)
  ROOT t = (f32[{0},{1}], f32[]) tuple(z, loss)
}})",
                                          rows, cols));
    for (const char* mapping : {"paper", "tuned"}) {
      const FusionPlan made = make_plan(graph, device("v100"), "astitch", {.knobs = {{"mapping", mapping}}});
      for (const KernelPlan& kernel : made.kernels)
        for (const Group& group : kernel.groups)
          if (extents(group.mapping).elements() == rows * cols) {
            EXPECT_GE(2 * group.deal.blocks(), std::min(group.deal.tasks, kernel.launch.blocks_per_wave))
                << mapping << ": " << to_text(group.mapping, group.deal);
          }
    }
  }
}

TEST(AstitchLanes, GroupsOfOtherPhasesShareBlocks) {
  const FusionPlan made = plan(dataset("fig7"));
  for (const Group& group : made.kernels.at(0).groups) {
    EXPECT_EQ(group.lane, 0);
    EXPECT_EQ(group.deal.first_block, 0);
  }
}

/// Two independent normalisations, of rows in shared memory.
Graph two_softmaxes() {
  std::string entry = "ENTRY e {\n zero = f32[] constant(0)\n";
  for (const char* n : {"a", "b"}) {
    entry += fmt::format(R"(
    x{0} = f32[{1},{2}] parameter({3})
    e{0} = f32[{1},{2}] exponential(x{0})
    s{0} = f32[{1}] reduce(e{0}, zero), dimensions={{1}}, to_apply=sum
    l{0} = f32[{1}] log(s{0})
    w{0} = f32[{1},{2}] broadcast(l{0}), dimensions={{0}}
    y{0} = f32[{1},{2}] divide(e{0}, w{0})
)",
                         n, *n == 'a' ? 64 : 40, *n == 'a' ? 128 : 96, *n == 'a' ? 0 : 1);
  }
  return parse(entry + " ROOT t = (f32[64,128], f32[40,96]) tuple(ya, yb)\n}");
}

TEST(AstitchLanes, LanesUseTheSameSharedMemory) {
  const Graph graph = two_softmaxes();
  const FusionPlan made = plan(graph);
  ASSERT_EQ(made.kernels.size(), 1u);
  const KernelPlan& kernel = made.kernels[0];
  std::vector<std::int64_t> offsets;
  for (const MemorySlot& slot : kernel.shared) {
    const std::string name = slot.op == kNoNode ? "" : graph.entry_computation().node(slot.op).name;
    if (name == "sa" || name == "sb") offsets.push_back(slot.offset);
  }
  EXPECT_THAT(offsets, ElementsAre(0, 0));
  EXPECT_EQ(kernel.launch.grid_barriers, 0);
}

class EditedLanes : public ::testing::Test {
 protected:
  std::vector<std::string> rules() const {
    std::vector<std::string> result;
    for (const Verdict& v : verify(graph_, device("v100"), plan_from_json(graph_, json_.dump(), "plan.json")))
      result.push_back(v.rule);
    return result;
  }
  Json& group(std::size_t g) { return json_["kernels"][0]["groups"][g]; }

  Graph graph_ = negations({4096, 4096});
  Json json_ = plan_to_json(graph_, plan(graph_));
};

TEST_F(EditedLanes, OfOnePhaseMustBeDisjoint) {
  EXPECT_THAT(rules(), ElementsAre());
  group(1)["first_block"] = 3;
  EXPECT_THAT(rules(), Contains("verify.lane"));
}

TEST_F(EditedLanes, OfOneNumberStartTogether) {
  group(1)["lane"] = 0;
  EXPECT_THAT(rules(), Contains("verify.lane"));
  group(1)["first_block"] = 0;
  EXPECT_THAT(rules(), ElementsAre());  // one after the other
}

TEST_F(EditedLanes, StayInsideTheGrid) {
  group(1)["first_block"] = 5;
  EXPECT_THAT(rules(), Contains("verify.grid"));
}

TEST(AstitchLanes, TheBusiestBlockIsCharged) {
  const Graph graph = negations({100 * 1024, 4 * 1024});
  const FusionPlan made = plan(graph);
  KernelPlan kernel = made.kernels.at(0);
  const double side_by_side = kernel_cost(graph, device("v100"), kernel).work.busiest_sm;
  for (Group& group : kernel.groups) group.deal.takers = 1;
  EXPECT_LT(side_by_side, 2);
  // 100 of 104 tasks, of 104 blocks that stand two on an SM: 50, were there nothing that every block does
  // before its tasks.
  const double one_block = kernel_cost(graph, device("v100"), kernel).work.busiest_sm;
  EXPECT_GT(one_block, 25);
  EXPECT_LT(one_block, 50);
}

}  // namespace TEST_FILE
}  // namespace stitchwork::astitch
