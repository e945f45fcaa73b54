#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

Graph parse(const std::string& text) { return parse_hlo("HloModule m\n" + text, "test.hlo"); }

std::vector<std::string> lines(const Graph& graph) {
  std::vector<std::string> out;
  for (const Node& node : graph.entry_computation().nodes)
    out.push_back(to_text(graph, graph.entry_computation(), node));
  return out;
}

TEST(JoinAsync, APairOfAnyOpBecomesTheOp) {
  const std::string wanted = "f32[8] negate(x)";
  // XLA's long spelling, with the wrapped computation, and the short one, without.
  for (const char* text :
       {R"(w { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }, execution_thread="other"
           ENTRY e { x = f32[8] parameter(0)
           s = ((f32[8]), f32[8], u32[]) async-start(x), async_execution_thread="other", calls=w
           u = ((f32[8]), f32[8], u32[]) async-update(s)
           ROOT d = f32[8] async-done(u) })",
        R"(w { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }
           ENTRY e { x = f32[8] parameter(0)  s = ((f32[8]), f32[8], u32[]) async-start(x), calls=w
           ROOT d = f32[8] async-done(s), calls=w })",
        R"(ENTRY e { x = f32[8] parameter(0)  s = ((f32[8]), f32[8], u32[]) negate-start(x)
           u = ((f32[8]), f32[8], u32[]) negate-update(s)  ROOT d = f32[8] negate-done(u) })"}) {
    const Graph graph = canonicalize(parse(text));
    validate(graph);
    ASSERT_EQ(lines(graph).size(), 2u) << text;
    EXPECT_TRUE(lines(graph)[1].ends_with(wanted)) << lines(graph)[1];
  }
}

TEST(JoinAsync, AttributesOfTheShortSpellingAreThoseOfTheOp) {
  const Graph graph = canonicalize(parse(R"(sum { a = f32[] parameter(0)  b = f32[] parameter(1)
    ROOT s = f32[] add(a, b) }
    async_wrapped { ROOT p = f32[] parameter(0) }
    ENTRY e { x = f32[4,8] parameter(0)  z = f32[] constant(0)
    s = ((f32[4,8], f32[]), f32[4], s32[]) reduce-start(x, z), dimensions={1}, to_apply=sum,
        async_execution_thread="t"
    ROOT d = f32[4] reduce-done(s) })"));
  EXPECT_EQ(lines(graph)[2], "s = f32[4] reduce(x, z), dimensions={1}, to_apply=sum");
}

TEST(JoinAsync, CopiesAndCollectivesBecomeTheOpTheyDo) {
  const Graph graph = join_async(parse(R"(sum { a = f32[] parameter(0)  b = f32[] parameter(1)
    ROOT s = f32[] add(a, b) }
    ENTRY e { x = f32[8] parameter(0)
    c = (f32[8], f32[8], u32[]) copy-start(x)
    cd = f32[8] copy-done(c)
    r = f32[8] all-reduce-start(cd), replica_groups={}, to_apply=sum
    rd = f32[8] all-reduce-done(r)
    g = (f32[8], f32[16]) all-gather-start(rd), dimensions={0}
    gd = f32[16] all-gather-done(g)
    p = (f32[16], f32[16], u32[], u32[]) collective-permute-start(gd), source_target_pairs={{0,1}}
    ROOT pd = f32[16] collective-permute-done(p) })"));
  validate(graph);
  EXPECT_EQ(lines(graph),
            (std::vector<std::string>{"x = f32[8] parameter(0)", "c = f32[8] copy(x)",
                                      "r = f32[8] all-reduce(c), replica_groups={}, to_apply=sum",
                                      "g = f32[16] all-gather(r), dimensions={0}",
                                      "p = f32[16] collective-permute(g), source_target_pairs={{0,1}}"}));
}

TEST(JoinAsync, AStartThatIsMoreThanWaitedForStays) {
  const Graph graph = parse(R"(ENTRY e { x = f32[8] parameter(0)  c = (f32[8], f32[8], u32[]) copy-start(x)
    ROOT t = ((f32[8], f32[8], u32[])) tuple(c) })");
  EXPECT_TRUE(equal(join_async(graph), graph));
}

TEST(JoinAsync, ShapesOfAPairMustFit) {
  EXPECT_THROW(parse("ENTRY e { x = f32[8] parameter(0)  ROOT s = f32[8] negate-start(x) }"), Error);
  EXPECT_THROW(parse("ENTRY e { x = f32[8] parameter(0)  ROOT s = f32[8] copy-done(x) }"), Error);
  EXPECT_THROW(parse(R"(w { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }
    ENTRY e { x = f32[8] parameter(0)  ROOT s = ((f32[8]), f32[9], u32[]) async-start(x), calls=w })"),
               Error);
}

TEST(HloText, AnAsynchronousPairPrintsInItsLongSpelling) {
  const Graph graph = parse(R"(ENTRY e { x = f32[8] parameter(0)
    s = ((f32[8]), f32[8], u32[]) custom-call-start(x), custom_call_target="t", async_execution_thread="a"
    ROOT d = f32[8] custom-call-done(s) })");
  const std::string text = to_text(graph);
  EXPECT_NE(text.find("async-start(x), async_execution_thread=\"a\", calls=async_wrapped"), std::string::npos)
      << text;
  EXPECT_NE(text.find("custom-call(param_0), custom_call_target=\"t\""), std::string::npos) << text;
  EXPECT_TRUE(equal(parse_hlo(text, "again.hlo"), graph));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
