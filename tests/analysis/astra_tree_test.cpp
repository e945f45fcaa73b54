// Super-epochs, epochs, streams; the update tree, the profile index and what is tried next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "analysis/planners/astra/space_tree.h"
#include "core/base/at.h"
#include "tests/support/astra_bindings.h"
#include "tests/support/astra_graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using astra::Bindings;
using astra::Epoch;
using astra::ProfileIndex;
using astra::TreeMode;
using astra::TreeNode;
using ::testing::ElementsAre;
using testing::planned_space;

Epoch epoch_of(std::vector<int> classes, double us = 1) {
  Epoch epoch;
  int step = 0;
  for (const int members : classes) {
    epoch.classes.emplace_back();
    epoch.classes.back().us = us;
    for (int m = 0; m < members; ++m) epoch.classes.back().steps.push_back(step++);
  }
  return epoch;
}

TEST(AstraStreams, OfEqualStepsOnlyTheNumberCounts) {
  // Section 4.5.5: 10 kernels on 2 streams; its 5 choices leave out 10 + 0 and count 5 + 5 once.
  EXPECT_EQ(astra::stream_choices(epoch_of({10}), 2, true).size(), 6u);
  EXPECT_EQ(astra::stream_choices(epoch_of({10}), 2, false).size(), 11u);
  EXPECT_EQ(astra::to_text(astra::stream_choices(epoch_of({10}), 2, true)[0]), "10+0");
  EXPECT_EQ(astra::to_text(astra::stream_choices(epoch_of({10}), 2, true)[1]), "5+5");
  EXPECT_EQ(astra::stream_choices(epoch_of({2, 1}), 2, false).size(), 6u);
  EXPECT_EQ(astra::stream_choices(epoch_of({4, 4, 4}), 3, false).size(), astra::kMostCounts);
  EXPECT_EQ(astra::stream_choices(epoch_of({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), 4, false).size(),
            astra::kMostCounts);
  // Many of many: each has all steps.
  for (const int streams : {2, 3, 4})
    for (const astra::StreamCounts& counts : astra::stream_choices(epoch_of({200, 37, 1}), streams, true)) {
      EXPECT_EQ(std::accumulate(counts[0].begin(), counts[0].end(), 0), 200);
      EXPECT_EQ(std::accumulate(counts[1].begin(), counts[1].end(), 0), 37);
      EXPECT_TRUE(std::is_sorted(counts[0].rbegin(), counts[0].rend()));
    }
  EXPECT_EQ(astra::stream_choices(epoch_of(std::vector<int>(300, 1)), 2, false).size(), astra::kMostCounts);
}

TEST(AstraStreams, TheMostEvenChoicesAreThoseOfTryingEverything) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    Epoch epoch = epoch_of({1 + static_cast<int>(random() % 6), 1 + static_cast<int>(random() % 6),
                            1 + static_cast<int>(random() % 4)});
    for (auto& of : epoch.classes) of.us = 1 + static_cast<double>(random() % 9);
    std::multiset<double> spreads;
    const auto spread = [&](const astra::StreamCounts& counts) {
      double load[2] = {0, 0};
      for (std::size_t c = 0; c < counts.size(); ++c)
        for (int s = 0; s < 2; ++s) load[s] += counts[c][at(s)] * epoch.classes[c].us;
      return std::abs(load[0] - load[1]);
    };
    const auto size = [&](int c) { return static_cast<int>(epoch.classes[at(c)].steps.size()); };
    for (int a = 0; a <= size(0); ++a)
      for (int b = 0; b <= size(1); ++b)
        for (int c = 0; c <= size(2); ++c)
          if (a + b + c < size(0) + size(1) + size(2))
            spreads.insert(spread({{a, size(0) - a}, {b, size(1) - b}, {c, size(2) - c}}));
    const auto choices = astra::stream_choices(epoch, 2, false);
    ASSERT_EQ(choices.size(), std::min(astra::kMostCounts, spreads.size() + 1));
    auto expected = spreads.begin();
    for (std::size_t c = 1; c < choices.size(); ++c) ASSERT_EQ(spread(choices[c]), *expected++);
  }
}

TEST(AstraStreams, ChainsAreEpochsOfOneStepEach) {
  const astra::Space space = planned_space(testing::astra_chains());
  ASSERT_EQ(space.streams.super_epochs.size(), 1u);
  const astra::SuperEpoch& part = space.streams.super_epochs[0];
  ASSERT_EQ(part.epochs.size(), 3u);
  std::vector<std::size_t> choices;
  for (std::size_t e = 0; e < 3; ++e) {
    EXPECT_EQ(part.epochs[e].classes.size(), 2u);
    choices.push_back(astra::stream_choices(part.epochs[e], 2, astra::behind_barrier(part, e)).size());
  }
  EXPECT_THAT(choices, ElementsAre(2, 4, 4));
  // Of equal sizes p and q are a class.
  const astra::Space equal = planned_space(testing::astra_chains(32));
  EXPECT_EQ(equal.streams.super_epochs[0].epochs[0].classes.size(), 1u);
}

/// Every step runs behind all that it depends on, by its stream or by what is waited for, and no wait is one
/// too many.
void expect_ordered(const astra::StreamSpace& space, const astra::Dealt& dealt) {
  std::vector<std::set<int>> ended(space.before.size());  // by step: those that have ended when it begins
  std::map<int, int> last;
  const auto learn = [&](int step, int of) {
    ended[at(step)].insert(of);
    ended[at(step)].insert(ended[at(of)].begin(), ended[at(of)].end());
  };
  for (const int step : dealt.order) {
    if (const auto before = last.find(dealt.stream[at(step)]); before != last.end())
      learn(step, before->second);
    for (const int p : dealt.waits[at(step)]) {
      EXPECT_NE(dealt.stream[at(p)], dealt.stream[at(step)]);
      EXPECT_FALSE(ended[at(step)].contains(p)) << "a wait that is covered";
    }
    for (const int p : dealt.waits[at(step)]) learn(step, p);
    for (const int p : space.before[at(step)]) EXPECT_TRUE(ended[at(step)].contains(p));
    last[dealt.stream[at(step)]] = step;
  }
  EXPECT_EQ(dealt.order.size(), space.before.size());
}

TEST(AstraStreams, WaitsAreEnoughAndNoneIsCovered) {
  std::mt19937 random(2);
  int waits = 0, alone = 0, parts = 0;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const Graph graph = seed == 0   ? testing::dataset("scrnn_tiny")
                        : seed == 1 ? testing::dataset("layer_norm_grad")
                                    : testing::random_dots(seed, 30);
    const FusionPlan plan = make_plan(graph, device("v100-sxm2"), seed == 1 ? "astitch" : "unfused");
    const astra::StreamSpace space =
        astra::stream_space(graph, plan, seed % 3 == 0 ? 20 : std::numeric_limits<double>::infinity());
    parts += static_cast<int>(space.super_epochs.size());
    for (const int streams : {1, 2, 3}) {
      std::vector<astra::StreamCounts> counts;
      for (const astra::SuperEpoch& part : space.super_epochs)
        for (std::size_t e = 0; e < part.epochs.size(); ++e) {
          const auto choices = astra::stream_choices(part.epochs[e], streams, astra::behind_barrier(part, e));
          counts.push_back(choices[random() % choices.size()]);
          alone += part.epochs[e].alone ? 1 : 0;
        }
      const astra::Dealt dealt = astra::deal(space, counts, streams);
      expect_ordered(space, dealt);
      for (const auto& list : dealt.waits) waits += static_cast<int>(list.size());
    }
  }
  EXPECT_GT(waits, 100);
  EXPECT_GT(alone, 0);
  EXPECT_GT(parts, 40);
}

std::vector<std::string> numbered(int n) {
  std::vector<std::string> result;
  for (int i = 0; i < n; ++i) result.push_back(std::to_string(i));
  return result;
}

/// Section 4.5.1: groups of 12 products, chunks of 1, 2 or 4 of them, 2 kernels for each call.
TreeNode paper_example(int groups) {
  std::vector<TreeNode> children;
  for (int g = 0; g < groups; ++g) {
    std::vector<TreeNode> chunks;
    for (const int calls : {12, 6, 3}) {
      std::vector<TreeNode> list;
      for (int c = 0; c < calls; ++c)
        list.push_back(
            astra::variable("g" + std::to_string(g) + "/" + std::to_string(calls) + "/" + std::to_string(c),
                            {"cublas", "openai"}));
      chunks.push_back(astra::parallel(std::move(list)));
    }
    children.push_back(astra::fork("g" + std::to_string(g), {"1", "2", "4"}, std::move(chunks)));
  }
  return astra::parallel(std::move(children));
}

/// Times that depend on what is bound at the name and above, drawn from a seed; forks take what is below
/// together.
astra::Measure times(const TreeNode& tree, unsigned seed) {
  return [&tree, seed](const Bindings& bindings) {
    std::map<std::string, double> us;
    const auto visit = [&](auto&& self, const TreeNode& node, const std::string& above) -> double {
      double sum = 0;
      if (node.mode == TreeMode::kVariable) {
        sum = 1 + static_cast<double>(std::hash<std::string>{}(above + node.name + bindings.at(node.name) +
                                                               std::to_string(seed)) %
                                      97);
      } else if (node.mode == TreeMode::kFork) {
        const auto place = std::find(node.options.begin(), node.options.end(), bindings.at(node.name));
        sum = self(self, node.children[static_cast<std::size_t>(place - node.options.begin())],
                   above + node.name + bindings.at(node.name));
      } else {
        for (const TreeNode& child : node.children) sum += self(self, child, above);
      }
      if (!node.name.empty()) us[node.name] = sum;
      return sum;
    };
    us["whole"] = visit(visit, tree, "");
    return us;
  };
}

TEST(AstraTree, TrialsAreTheMostTheSumAndTheProduct) {
  const TreeNode five = astra::variable("a", numbered(5)), three = astra::variable("b", numbered(3));
  EXPECT_EQ(astra::trials(astra::parallel({five, three})), 5);
  EXPECT_EQ(astra::trials(astra::prefix({five, three})), 8);
  EXPECT_EQ(astra::trials(astra::fork("f", numbered(4), {three, three, three, three})), 12);
  EXPECT_EQ(astra::configurations(astra::prefix({five, three})), 15);
}

TEST(AstraTree, ThePapersExampleTakesSixTrialsInsteadOf7776) {
  const TreeNode tree = paper_example(5);
  EXPECT_EQ(astra::trials(tree), 6);
  // The paper counts one kernel for all calls of a chunk.
  std::vector<TreeNode> coarse;
  for (int g = 0; g < 5; ++g) {
    std::vector<TreeNode> chunks;
    for (int c = 0; c < 3; ++c)
      chunks.push_back(
          astra::variable("k" + std::to_string(g) + "/" + std::to_string(c), {"cublas", "openai"}));
    coarse.push_back(astra::fork("g" + std::to_string(g), {"1", "2", "4"}, std::move(chunks)));
  }
  EXPECT_EQ(astra::configurations(astra::parallel(coarse)), 7776);
  ProfileIndex index;
  const std::size_t run = astra::explore(tree, "b0", index, times(tree, 1), 1000).size();
  EXPECT_GE(run, 6u);
  // A chunk whose best kernels are mixed is run once more, each; all groups at once.
  EXPECT_LE(run, 9u);
  ProfileIndex of_coarse;
  const TreeNode plain = astra::parallel(coarse);
  EXPECT_EQ(astra::explore(plain, "b0", of_coarse, times(plain, 1), 1000).size(), 6u);
}

TreeNode random_tree(std::mt19937& random, int depth, int& names) {
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int kind = depth == 0 ? 0 : draw(4);
  if (kind == 0) return astra::variable("v" + std::to_string(names++), numbered(1 + draw(3)));
  std::vector<TreeNode> children;
  for (int c = 0; c < 1 + draw(3); ++c) children.push_back(random_tree(random, depth - 1, names));
  if (kind == 1) return astra::parallel(std::move(children));
  if (kind == 2) return astra::prefix(std::move(children));
  std::vector<std::string> options = numbered(static_cast<int>(children.size()));
  return astra::fork("f" + std::to_string(names++), std::move(options), std::move(children));
}

TEST(AstraTree, TheOptimumIsThatOfTryingEverything) {
  std::mt19937 random(11);
  int compared = 0;
  for (int trial = 0; trial < 400; ++trial) {
    int names = 0;
    const TreeNode tree = random_tree(random, 3, names);
    if (astra::configurations(tree) > 1024) continue;
    const astra::Measure measure = times(tree, static_cast<unsigned>(trial));
    double least = std::numeric_limits<double>::infinity();
    const std::vector<Bindings> all = testing::everything(tree);
    ASSERT_EQ(static_cast<double>(all.size()), astra::configurations(tree));
    for (const Bindings& bindings : all) least = std::min(least, measure(bindings).at("whole"));
    ProfileIndex index;
    const auto run = astra::explore(tree, "b0", index, measure, 10'000);
    Bindings best;
    ASSERT_TRUE(astra::next(tree, "b0", index, best));
    ASSERT_EQ(measure(best).at("whole"), least) << "trial " << trial;
    // What was known is not run again; a fork may run its options at their best once more.
    ASSERT_LE(run.size(), 2 * all.size());
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

TEST(AstraTree, StoppedAndResumedItRunsTheSame) {
  std::mt19937 random(13);
  for (int trial = 0; trial < 100; ++trial) {
    int names = 0;
    const TreeNode tree = random_tree(random, 3, names);
    const astra::Measure measure = times(tree, static_cast<unsigned>(trial));
    ProfileIndex index, stopped;
    const auto at_once = astra::explore(tree, "b0", index, measure, 300);
    std::vector<Bindings> in_parts;
    while (in_parts.size() < at_once.size()) {
      const std::size_t budget = 1 + random() % 3;
      const ProfileIndex saved = stopped;  // nothing else goes on
      stopped = saved;
      for (Bindings& bindings :
           astra::explore(tree, "b0", stopped, measure, std::min(budget, at_once.size() - in_parts.size())))
        in_parts.push_back(std::move(bindings));
    }
    ASSERT_EQ(in_parts, at_once);
    ASSERT_EQ(stopped, index);
  }
}

/// Of measured times an option has to be clearly faster than those before it.
TEST(AstraTree, AMarginKeepsTheFirstOfNearlyEqualOptions) {
  const TreeNode tree =
      astra::fork("f", {"x", "y"}, {astra::variable("v", {"a", "b", "c"}), astra::variable("w", {"d"})});
  const auto best = [&](double b, double c, double y, double margin) {
    const ProfileIndex index = {{"b0/f=x/v=a", 100},  {"b0/f=x/v=b", b},    {"b0/f=x/v=c", c},
                                {"b0/f=y/w=d", 1},    {"b0/f=x{v=a}", 200}, {"b0/f=x{v=b}", 200},
                                {"b0/f=x{v=c}", 200}, {"b0/f=y{w=d}", y}};
    Bindings bindings;
    EXPECT_TRUE(astra::next(tree, "b0", index, bindings, margin));
    return bindings.at("f") == "x" ? bindings.at("v") : bindings.at("f");
  };
  EXPECT_EQ(best(99.5, 99.2, 199, 0), "y");
  EXPECT_EQ(best(99.5, 99.2, 199, 0.01), "a");
  EXPECT_EQ(best(99.5, 98.9, 199, 0.01), "c");
  EXPECT_EQ(best(98.5, 98, 199, 0.01), "b") << "c is not clearly faster than b";
  EXPECT_EQ(best(98.5, 98, 197, 0.01), "y");
}

TEST(AstraTree, BucketsDoNotShareWhatTheyKnow) {
  const TreeNode tree = paper_example(2);
  ProfileIndex index;
  const auto first = astra::explore(tree, "b0", index, times(tree, 1), 1000);
  EXPECT_EQ(astra::explore(tree, "b0", index, times(tree, 1), 1000).size(), 0u);
  EXPECT_EQ(astra::explore(tree, "b1", index, times(tree, 1), 1000), first);
}

TreeNode tree_of(const Graph& graph, std::vector<std::string> variants, int streams) {
  const FusionPlan plan = make_plan(graph, device("v100-sxm2"), "xla");
  return astra::space_tree(graph, device("v100-sxm2"), plan, astra::enumerate(graph, plan),
                           {std::move(variants), true, true, streams});
}

TEST(AstraTree, OfTheWorkedExamplesTakesTheirTrials) {
  const TreeNode cell = tree_of(testing::astra_lstm_cell(), {"a", "b"}, 1);
  EXPECT_EQ(astra::trials(cell.children[0].children[0]), 12);
  ProfileIndex index;
  const std::size_t run = astra::explore(cell, "b0", index, times(cell, 3), 1000).size();
  EXPECT_GE(run, 12u);
  EXPECT_LE(run, 12u + 6u);  // each chunk at its best once more where that mixes kernels
  // Two strategies, a group of two chunks in each.
  const TreeNode conflict = tree_of(testing::astra_conflict(), {"a"}, 1);
  EXPECT_EQ(conflict.options.size(), 2u);
  EXPECT_EQ(astra::trials(conflict.children[0].children[0]), 2);
  ProfileIndex of_conflict;
  EXPECT_EQ(astra::explore(conflict, "b0", of_conflict, times(conflict, 3), 1000).size(), 4u);
  // Chains: one for the products, 2 + 4 + 4 for the epochs, of which the first of each is known before.
  const TreeNode chains = tree_of(testing::astra_chains(), {"a"}, 2);
  EXPECT_EQ(astra::trials(chains.children[0]), 11);
  ProfileIndex of_chains;
  EXPECT_EQ(astra::explore(chains, "b0", of_chains, times(chains, 3), 1000).size(), 8u);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
