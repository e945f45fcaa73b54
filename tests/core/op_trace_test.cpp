// Every name of a file is found again, or what became of it.
#include "core/passes/op_trace.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kModel[] = R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT sum = f32[] add(a, b) }
relu { r = f32[4] parameter(0)  zero = f32[] constant(0)  zeros = f32[4] broadcast(zero), dimensions={}
  ROOT largest = f32[4] maximum(r, zeros) }
ENTRY main { x = f32[4] parameter(0)  t = f32[4] tanh(x)  again = f32[4] tanh(x)
  unread = f32[4] exponential(x)  called = f32[4] call(again), to_apply=relu
  pair = (f32[4], f32[4]) tuple(called, t)  one = f32[4] get-tuple-element(pair), index=1
  far = f32[4] asinh(one)  both = f32[4] add(called, far)  ROOT out = f32[4] negate(both) })";

struct Asked {
  std::vector<OpName> now;
  std::string text;
};

Asked ask(const std::string& op) {
  OpTrace trace;
  const Graph graph = canonicalize(parse_hlo(kModel, "test.hlo"), &trace);
  Asked asked;
  const std::optional<OpName> found = trace.find(op, "main");
  if (!found) return asked;
  std::vector<OpTrace::Step> steps;
  asked.now = trace.now(graph, *found, &steps);
  for (const OpTrace::Step& step : steps) asked.text += to_text(step) + "; ";
  return asked;
}

TEST(OpTrace, TellsWhatBecameOfEachKindOfOp) {
  const OpName t{"main", "t"};
  EXPECT_EQ(ask("again").now, std::vector{t});
  EXPECT_THAT(ask("again").text, HasSubstr("again was merged with t, which computes the same"));
  EXPECT_EQ(ask("one").now, std::vector{t});
  EXPECT_THAT(ask("one").text, HasSubstr("one was folded: it is t"));
  EXPECT_TRUE(ask("unread").now.empty());
  EXPECT_THAT(ask("unread").text, HasSubstr("no output depends on it"));
  EXPECT_THAT(ask("called").text, HasSubstr("called was inlined: its value is largest"));
  EXPECT_EQ(ask("called").now.size(), 1u);
  EXPECT_THAT(ask("far").text, HasSubstr("far was rewritten as "));
  EXPECT_GT(ask("far").now.size(), 1u);
  EXPECT_EQ(ask("sum").text, "sum was left out: nothing calls add; ");
  EXPECT_THAT(ask("zeros").text, Not(HasSubstr("left out")));  // its copy in the caller is there
}

TEST(OpTrace, EveryNameOfTheFileLeadsSomewhereOrIsLeftOut) {
  OpTrace trace;
  const Graph read = parse_hlo(kModel, "test.hlo");
  const Graph graph = canonicalize(read, &trace);
  for (const Computation& computation : read.computations)
    for (const Node& node : computation.nodes) {
      std::vector<OpTrace::Step> steps;
      const std::vector<OpName> now = trace.now(graph, {computation.name, node.name}, &steps);
      const bool explained = !steps.empty() && steps.back().into.empty();
      EXPECT_TRUE(!now.empty() || explained) << computation.name << " " << node.name;
    }
}

TEST(OpTrace, APassWithoutOneGivesTheSameGraph) {
  OpTrace trace;
  const Graph read = parse_hlo(kModel, "test.hlo");
  EXPECT_TRUE(equal(canonicalize(read), canonicalize(read, &trace)));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
