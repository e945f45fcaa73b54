// What the reader takes, beyond the datasets: forms of hand-written text and of dumps.
#include <gtest/gtest.h>

#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

const Node& entry_node(const Graph& graph, std::string_view name) {
  const Computation& entry = graph.entry_computation();
  const NodeId id = entry.find(name);
  EXPECT_NE(id, kNoNode) << name;
  return entry.node(id);
}

Graph parse_entry(const std::string& body) {
  return parse_hlo("HloModule m\nENTRY main {\n" + body + "\n}\n", "test.hlo");
}

TEST(HloParse, LongFormAndShortFormGiveTheSameGraph) {
  const Graph brief = parse_hlo(R"(HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[4,8] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[4] reduce(x, zero), dimensions={1}, to_apply=sum
})",
                                "brief.hlo");
  const Graph full = parse_hlo(R"(HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(f32[] %a, f32[] %b)
}

// the main computation
ENTRY %main (x: f32[4,8]) -> f32[4] {
  %x = f32[4,8]{1,0:T(8,128)S(1)} parameter(0)
  %zero = f32[] constant(0) /* neutral */
  ROOT %r = f32[4]{0} reduce(f32[4,8]{1,0} %x, /*index=1*/f32[] %zero), dimensions={1}, to_apply=%sum
}
)",
                               "full.hlo");
  EXPECT_TRUE(equal(brief, full));
  EXPECT_EQ(simple_reducer(brief, applied(entry_node(brief, "r"))), Op::kAdd);
}

TEST(HloParse, ComputationsComeInAnyOrderAndAreSortedCalleesFirst) {
  const Graph graph = parse_hlo(R"(HloModule m
ENTRY main { x = f32[2] parameter(0)  ROOT y = f32[2] call(x), to_apply=outer }
outer { p = f32[2] parameter(0)  ROOT c = f32[2] call(p), to_apply=inner }
inner { q = f32[2] parameter(0)  ROOT n = f32[2] negate(q) })",
                                "test.hlo");
  ASSERT_EQ(graph.computations.size(), 3u);
  EXPECT_EQ(graph.computations[0].name, "inner");
  EXPECT_EQ(graph.computations[1].name, "outer");
  EXPECT_EQ(graph.entry, 2);
  validate(graph);
}

TEST(HloParse, WhereNoRootIsMarkedTheLastInstructionIsIt) {
  const Graph graph = parse_entry("x = f32[2] parameter(0)\ny = f32[2] negate(x)");
  EXPECT_EQ(graph.entry_computation().root, 1);
}

TEST(HloParse, AByteOrderMarkIsNoText) {
  EXPECT_EQ(parse_hlo("\xEF\xBB\xBFHloModule m\nENTRY e { ROOT p = f32[2] parameter(0) }", "m.hlo").name,
            "m");
}

TEST(HloParse, LinesAreThoseOfTheFile) {
  const Graph graph = parse_entry("x = f32[2] parameter(0)\n\n/* a\n comment */ y = f32[2] negate(x)");
  EXPECT_EQ(entry_node(graph, "x").line, 3);
  EXPECT_EQ(entry_node(graph, "y").line, 6);
}

TEST(HloParse, TypedAttributesAreRead) {
  const Graph graph = parse_entry(R"(
    x = f32[4,6] parameter(0)
    i = s32[] parameter(1)
    ids = s32[3,1] parameter(2)
    zero = f32[] constant(0)
    sl = f32[2,3] slice(x), slice={[0:4:2], [1:4]}
    pd = f32[7,8] pad(x, zero), padding=0_0_1x1_1
    ds = f32[2,2] dynamic-slice(x, i, i), dynamic_slice_sizes={2,2}
    cm = pred[4,6] compare(x, x), direction=GE, type=FLOAT
    dt = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    ga = f32[3,6] gather(x, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}
    io = s32[4,6] iota(), iota_dimension=1
    tu = (f32[2,3], s32[]) tuple(sl, i)
    ROOT el = s32[] get-tuple-element(tu), index=1)");
  EXPECT_EQ(entry_node(graph, "sl").attrs.slice, (std::vector<SliceSpec>{{0, 4, 2}, {1, 4, 1}}));
  EXPECT_EQ(entry_node(graph, "pd").attrs.padding, (std::vector<PadSpec>{{0, 0, 1}, {1, 1, 0}}));
  EXPECT_EQ(entry_node(graph, "ds").attrs.slice_sizes, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(entry_node(graph, "cm").attrs.comparison, Comparison::kGe);
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(entry_node(graph, "cm").attrs.other, (Pairs{{"type", "FLOAT"}}));
  EXPECT_EQ(entry_node(graph, "dt").attrs.dot->rhs_contracting, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(entry_node(graph, "ga").attrs.gather->slice_sizes, (std::vector<std::int64_t>{1, 6}));
  EXPECT_EQ(entry_node(graph, "ga").attrs.gather->index_vector_dim, 1);
  EXPECT_EQ(entry_node(graph, "io").attrs.dimensions, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(entry_node(graph, "el").attrs.tuple_index, 1);
}

TEST(HloParse, UnknownAttributesStayVerbatimAndInOrder) {
  const std::string line =
      R"(c = f32[2]{0} custom-call(x), window={size=2x2 pad=0_1x0_1}, custom_call_target="a \"b\", c}", )"
      R"(sharding={devices=[2,1]0,1}, control-predecessors={x}, metadata={op_type="t" op_name="jit(f)/a[b=(1,)]" )"
      R"(source_line=3}, backend_config={"a":[1,{"b":"}"}],"c":""})";
  const Graph graph = parse_entry("x = f32[2] parameter(0)\nROOT " + line);
  const Node& node = entry_node(graph, "c");
  ASSERT_EQ(node.attrs.other.size(), 5u);
  EXPECT_EQ(node.attrs.other[4].second, R"({"a":[1,{"b":"}"}],"c":""})");
  EXPECT_EQ(node.metadata.op_name, "jit(f)/a[b=(1,)]");
  EXPECT_NE(to_text(graph).find(line), std::string::npos) << to_text(graph);
}

TEST(HloParse, ControlFlowNamesItsComputationsInAFixedOrder) {
  const Graph graph = parse_hlo(R"(HloModule m
cond { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(3)  ROOT l = pred[] compare(i, n), direction=LT }
body { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  j = s32[] add(i, i)  ROOT t = (s32[]) tuple(j) }
yes { p = f32[2] parameter(0)  ROOT r = f32[2] negate(p) }
no { p = f32[2] parameter(0)  ROOT r = f32[2] abs(p) }
ENTRY main {
  s = (s32[]) parameter(0)
  x = f32[2] parameter(1)
  b = pred[] parameter(2)
  w = (s32[]) while(s), body=body, condition=cond
  c = f32[2] conditional(b, x, x), false_computation=no, true_computation=yes
  i = s32[] get-tuple-element(w), index=0
  d = f32[2] conditional(i, x, x), branch_computations={no, yes}
  ROOT t = (f32[2], f32[2]) tuple(c, d)
})",
                                "test.hlo");
  const auto names = [&](std::string_view node) {
    std::vector<std::string> out;
    for (const ComputationId id : entry_node(graph, node).attrs.computations)
      out.push_back(graph.computation(id).name);
    return out;
  };
  EXPECT_EQ(names("w"), (std::vector<std::string>{"cond", "body"}));
  EXPECT_EQ(names("c"), (std::vector<std::string>{"yes", "no"}));
  EXPECT_EQ(names("d"), (std::vector<std::string>{"no", "yes"}));
  const std::string text = to_text(graph);
  EXPECT_NE(text.find("while(s), condition=cond, body=body"), std::string::npos);
  EXPECT_NE(text.find("conditional(b, x, x), true_computation=yes, false_computation=no"), std::string::npos);
  EXPECT_NE(text.find("conditional(i, x, x), branch_computations={no, yes}"), std::string::npos);
}

TEST(HloParse, NamesThatWouldBeMisreadKeepTheirSign) {
  const Graph graph =
      parse_entry("%0 = f32[2] parameter(0)\n%ROOT = f32[2] negate(%0)\nROOT %1 = f32[2] abs(%ROOT)");
  EXPECT_EQ(graph.entry_computation().node(1).name, "ROOT");
  EXPECT_TRUE(equal(graph, parse_hlo(to_text(graph), "again.hlo")));
}

TEST(HloPrint, OneLineLeavesDefaultLayoutsOut) {
  const Graph graph = parse_entry(
      "x = f32[2,3] parameter(0)\ny = f32[3,2]{0,1} transpose(x), dimensions={1,0}\nROOT z = f32[3,2]{1,0} "
      "negate(y)");
  const Computation& entry = graph.entry_computation();
  EXPECT_EQ(to_text(graph, entry, entry.node(0)), "x = f32[2,3] parameter(0)");
  EXPECT_EQ(to_text(graph, entry, entry.node(1)), "y = f32[3,2]{0,1} transpose(x), dimensions={1,0}");
  EXPECT_EQ(to_text(graph, entry, entry.node(2)), "z = f32[3,2] negate(y)");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
