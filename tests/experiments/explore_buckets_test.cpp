// Sequences of many lengths: a model unrolled for each of a few.
#include "experiments/explore_buckets.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/evaluate/evaluator.h"
#include "core/hlo/hlo_text.h"
#include "tests/codegen/harness.h"
#include "tests/experiments/sample_trial.h"
#include "tests/support/graphs.h"
#include "tests/support/json_schema.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::message_of;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One step of gradient descent of w on the sum of all x_t w, unrolled. w is the last parameter, so that its
/// number is another in each.
Model steps_of(int length) {
  std::string text =
      "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n";
  text += fmt::format("ENTRY main {{\n  w = f32[6,5] parameter({})\n  zero = f32[] constant(0)\n", length);
  text += "  rate = f32[] constant(0.01)\n";
  text += "  one = f32[] constant(1)\n  ones = f32[4,5] broadcast(one), dimensions={}\n";
  for (int t = 0; t < length; ++t)
    text += fmt::format(
        "  x{0} = f32[4,6] parameter({1})\n  y{0} = f32[4,5] dot(x{0}, w), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={{0}}\n  z{0} = f32[4,5] tanh(y{0})\n  g{0} = f32[6,5] dot(x{0}, ones), "
        "lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}\n",
        t, t);
  for (int t = 1; t < length; ++t)
    text +=
        fmt::format("  zs{0} = f32[4,5] add({1}, z{0})\n  gs{0} = f32[6,5] add({2}, g{0})\n", t,
                    t == 1 ? "z0" : fmt::format("zs{}", t - 1), t == 1 ? "g0" : fmt::format("gs{}", t - 1));
  text += fmt::format(
      "  loss = f32[] reduce(zs{0}, zero), dimensions={{0,1}}, to_apply=add\n"
      "  rates = f32[6,5] broadcast(rate), dimensions={{}}\n  step = f32[6,5] multiply(gs{0}, rates)\n"
      "  next = f32[6,5] subtract(w, step)\n  ROOT r = (f32[], f32[6,5]) tuple(loss, next)\n}}\n",
      length - 1);
  Model model;
  model.graph = testing::graph_of(text);
  model.graph.source = fmt::format("steps_{}", length);
  model.graph.source_sha256 = sha256_hex(text);
  return model;
}

const std::vector<Bucket> kBuckets = {{2, "two"}, {3, "three"}, {5, "five"}};
std::vector<Model> models() { return {steps_of(2), steps_of(3), steps_of(5)}; }

ExploreOptions options_of(const std::string& backend) {
  ExploreOptions options;
  options.trial.planner = "astra-f";
  options.trial.backend = backend;
  return options;
}

TEST(ExploreBuckets, AMiniBatchRunsInTheFirstThatHoldsIt) {
  const BucketOrder order(kBuckets, {1, 2, 3, 4, 5, 5}, 0);
  std::vector<std::size_t> first;
  for (std::size_t n = 0; n < 8; ++n) first.push_back(order[n]);
  EXPECT_THAT(first, ElementsAre(0, 0, 1, 2, 2, 2, 0, 0));
  EXPECT_THAT(order.shares(),
              ElementsAre(::testing::DoubleNear(2.0 / 6, 1e-12), ::testing::DoubleNear(1.0 / 6, 1e-12),
                          ::testing::DoubleNear(3.0 / 6, 1e-12)));
  const BucketOrder drawn(kBuckets, {}, 7);
  std::vector<int> count(3);
  for (std::size_t n = 0; n < 3000; ++n) ++count[drawn[n]];
  for (const int one : count) EXPECT_NEAR(one, 1000, 120);
}

TEST(ExploreBuckets, WhatIsWrongIsOneLine) {
  EXPECT_THAT(message_of([] { parse_buckets({"5=a", "3=b"}); }), HasSubstr("--buckets: 3 behind 5"));
  EXPECT_THAT(message_of([] { parse_buckets({"5=a", "5=b"}); }), HasSubstr("--buckets: 5 behind 5"));
  for (const char* part : {"a", "=a", "5=", "0=a", "-1=a", "5x=a"})
    EXPECT_THAT(message_of([&] { parse_buckets({part}); }), HasSubstr("is no LENGTH=MODEL")) << part;
  EXPECT_THAT(message_of([] { parse_lengths("1\n2\nthree\n", "l.txt"); }),
              HasSubstr("l.txt:3: 'three' is no"));
  EXPECT_THAT(message_of([] { parse_lengths("\n\n", "l.txt"); }), HasSubstr("has no lengths"));
  EXPECT_EQ(parse_lengths("4\r\n5", "l.txt"), (std::vector<int>{4, 5}));
  EXPECT_THAT(message_of([] { BucketOrder(kBuckets, {6}, 0); }),
              HasSubstr("no bucket holds a length of 6: the last has 5"));
}

TEST(ExploreBuckets, EachIsExploredAsByItself) {
  const BucketedExploration e = explore_buckets(kBuckets, models(), {}, options_of("model"));
  EXPECT_TRUE(e.done);
  double first = 0, best = 0;
  std::size_t all = 0;
  for (std::size_t b = 0; b < kBuckets.size(); ++b) {
    const Exploration alone = explore(models()[b], options_of("model"));
    EXPECT_EQ(e.explorations[b].minibatches, alone.minibatches);
    first += alone.minibatches.front().us / 3;
    best += alone.minibatches[alone.best].us / 3;
    all += alone.minibatches.size();
  }
  EXPECT_NEAR(e.first_us.value(), first, 1e-9);
  EXPECT_NEAR(e.best_us.value(), best, 1e-9);
  EXPECT_EQ(e.minibatches, all);
  EXPECT_THAT(testing::JsonSchema::read("docs/schema/bucketed-exploration.schema.json")
                  .problems(nlohmann::json::parse(exploration_json(e).dump())),
              ::testing::IsEmpty());
}

TEST(ExploreBuckets, OnesThatTheDataHasNotAreNotExplored) {
  const BucketedExploration e = explore_buckets(kBuckets, models(), {1, 3}, options_of("model"));
  EXPECT_TRUE(e.explorations[2].minibatches.empty());
  EXPECT_FALSE(e.explorations[0].minibatches.empty());
  EXPECT_TRUE(e.first_us);
  ExploreOptions options = options_of("model");
  options.batches = 1;
  EXPECT_FALSE(explore_buckets(kBuckets, models(), {1, 3}, options).first_us) << "a bucket had none yet";
}

/// One state for all, whichever bucket a mini-batch is in, and across runs.
TEST(ExploreBuckets, TrainOneSetOfParameters) {
  SKIP_WITHOUT_COMPILER();
  ExploreOptions options = options_of("sim");
  options.trial.check = true;
  options.train = std::vector<FedBack>{{1, 2}};  // of the first model
  options.batches = 12;
  const BucketedExploration whole = explore_buckets(kBuckets, models(), {2, 5, 3}, options);
  std::vector<Training> reference;
  const std::vector<Model> of = models();
  for (std::size_t b = 0; b < of.size(); ++b)
    reference.emplace_back(of[b], 0, std::vector<FedBack>{{1, static_cast<std::size_t>(kBuckets[b].length)}});
  const BucketOrder order(kBuckets, {2, 5, 3}, 0);
  std::vector<std::size_t> done(3);
  std::optional<std::size_t> last;
  std::size_t run = 0;
  for (std::size_t n = 0; run < whole.minibatches; ++n) {
    ASSERT_LT(n, 1000u);
    const std::size_t b = order[n];
    if (done[b] == whole.explorations[b].minibatches.size()) continue;
    if (last) reference[b].take(reference[*last]);
    const std::vector<Literal> outputs = evaluate(of[b].graph, reference[b].inputs(done[b]));
    EXPECT_NEAR(whole.explorations[b].minibatches[done[b]].loss.value(), reference[b].loss(outputs).value(),
                1e-3);
    reference[b].step(outputs);
    ++done[b], ++run;
    last = b;
  }
  options.history = testing::test_folder() + "/history.db";
  options.resume = true;
  for (const std::size_t some : {3, 1, 4, 4}) {
    options.batches = some;
    explore_buckets(kBuckets, models(), {2, 5, 3}, options);
  }
  EXPECT_TRUE(std::filesystem::exists(options.history + ".b5"));
  options.batches = 0;
  const BucketedExploration resumed = explore_buckets(kBuckets, models(), {2, 5, 3}, options);
  for (std::size_t b = 0; b < 3; ++b)
    EXPECT_EQ(resumed.explorations[b].minibatches, whole.explorations[b].minibatches) << b;
  std::vector<Model> others = models();
  others[1] = load_model("scrnn_tiny");
  options.history.clear();
  options.batches = 4;
  EXPECT_THAT(message_of([&] {
                explore_buckets(kBuckets, others, {2, 5, 3}, options);
              }),
              AllOf(HasSubstr("buckets are one training step")));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
