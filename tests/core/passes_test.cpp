#include "core/passes/passes.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/fold_transposes.h"

namespace stitchwork {
namespace TEST_FILE {

/// The entry's instructions, one a line, and before them the other computations' names.
std::string listing(const Graph& graph) {
  std::string out = "\n";
  for (std::size_t c = 0; c < graph.computations.size(); ++c) {
    if (static_cast<ComputationId>(c) != graph.entry) out += graph.computations[c].name + "\n";
  }
  const Computation& entry = graph.entry_computation();
  for (const Node& node : entry.nodes) {
    out += (node.id == entry.root ? "ROOT " : "") + to_text(graph, entry, node) + "\n";
  }
  return out;
}

Graph parse(const std::string& text) { return parse_hlo("HloModule m\n" + text, "test.hlo"); }

TEST(InlineCalls, NestedCallsGoAndTheCallersNamesStay) {
  const Graph graph = parse(R"hlo(
inner { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p), metadata={op_name="neg"} }
outer {
  b = f32[2] parameter(1)
  a = f32[2] parameter(0)
  i = f32[2] call(b), to_apply=inner, metadata={op_name="jit(f)/jit(inner)"}
  ROOT s = f32[2] subtract(a, i), metadata={op_name="jit(f)/sub"}
}
ENTRY e {
  x = f32[2] parameter(0)
  c = f32[2] call(x, x), to_apply=outer, metadata={op_name="jit(f)/jit(outer)"}
  d = f32[2] call(c, x), to_apply=outer
  n = f32[2] abs(d)
  ROOT s = f32[2] add(n, c)
})hlo");
  const Graph result = inline_calls(graph);
  validate(result);
  EXPECT_EQ(listing(result), R"hlo(
inner
outer
x = f32[2] parameter(0)
n.1 = f32[2] negate(x), metadata={op_name="jit(f)/jit(inner)/neg"}
s.1 = f32[2] subtract(x, n.1), metadata={op_name="jit(f)/sub"}
n.2 = f32[2] negate(x), metadata={op_name="jit(f)/jit(inner)/neg"}
s.2 = f32[2] subtract(s.1, n.2), metadata={op_name="jit(f)/sub"}
n = f32[2] abs(s.2)
ROOT s = f32[2] add(n, s.1)
)hlo");
}

TEST(InlineCalls, ACallThatIsTheRootOrGivesBackItsArgumentIsInlinedToo) {
  const Graph result = inline_calls(parse(R"hlo(
same { ROOT p = f32[2] parameter(0) }
ENTRY e { x = f32[2] parameter(0)  y = f32[2] negate(x)  ROOT c = f32[2] call(y), to_apply=same })hlo"));
  EXPECT_EQ(listing(result), "\nsame\nx = f32[2] parameter(0)\nROOT y = f32[2] negate(x)\n");
}

TEST(InlineCalls, LoopsAndBranchesStay) {
  const Graph graph = parse(R"hlo(
yes { p = f32[2] parameter(0)  ROOT r = f32[2] negate(p) }
ENTRY e {
  x = f32[2] parameter(0)
  b = pred[] parameter(1)
  ROOT c = f32[2] conditional(b, x, x), true_computation=yes, false_computation=yes
})hlo");
  EXPECT_TRUE(equal(inline_calls(graph), graph));
}

TEST(FoldTuples, ElementsOfTuplesAreReadDirectly) {
  const Graph result = fold_tuples(parse(R"hlo(
ENTRY e {
  x = f32[2] parameter(0)
  y = s32[] parameter(1)
  in = (f32[2], s32[]) tuple(x, y)
  out = ((f32[2], s32[]), s32[]) tuple(in, y)
  g = (f32[2], s32[]) get-tuple-element(out), index=0
  h = f32[2] get-tuple-element(g), index=0
  ROOT r = (f32[2], s32[]) tuple(h, y)
})hlo"));
  validate(result);
  EXPECT_EQ(listing(result), R"hlo(
x = f32[2] parameter(0)
y = s32[] parameter(1)
ROOT r = (f32[2], s32[]) tuple(x, y)
)hlo");
}

TEST(FoldTuples, ATupleWithAnotherUseStays) {
  const Graph result = fold_tuples(parse(R"hlo(
ENTRY e {
  x = f32[2] parameter(0)
  t = (f32[2]) tuple(x)
  g = f32[2] get-tuple-element(t), index=0
  n = f32[2] negate(g)
  ROOT r = ((f32[2]), f32[2]) tuple(t, n)
})hlo"));
  EXPECT_EQ(listing(result), R"hlo(
x = f32[2] parameter(0)
t = (f32[2]) tuple(x)
n = f32[2] negate(x)
ROOT r = ((f32[2]), f32[2]) tuple(t, n)
)hlo");
}

TEST(DeadCode, UnusedNodesAndComputationsGoParametersAndEffectsStay) {
  const Graph result = eliminate_dead_code(parse(R"hlo(
unused { ROOT p = f32[] parameter(0) }
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  d = f32[] negate(a)  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  z = f32[] constant(0)
  dead = f32[2] negate(y)
  deader = f32[2] abs(dead)
  log = () custom-call(y), custom_call_target="log", custom_call_has_side_effect=true
  quiet = f32[2] custom-call(y), custom_call_target="pure"
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum
})hlo"));
  validate(result);
  EXPECT_EQ(listing(result), R"hlo(
sum
x = f32[2] parameter(0)
y = f32[2] parameter(1)
z = f32[] constant(0)
log = () custom-call(y), custom_call_target="log", custom_call_has_side_effect=true
ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum
)hlo");
  EXPECT_EQ(result.computations[0].size(), 3) << "sum's negate is dead";
}

TEST(DeadCode, ALoopThatSendsStays) {
  const Graph graph = parse(R"hlo(
cond { s = (s32[]) parameter(0)  ROOT t = pred[] constant(false) }
body { s = (s32[]) parameter(0)  c = () custom-call(), custom_call_target="log", custom_call_has_side_effect=true  i = s32[] get-tuple-element(s), index=0  ROOT t = (s32[]) tuple(i) }
ENTRY e {
  x = (s32[]) parameter(0)
  w = (s32[]) while(x), condition=cond, body=body
  ROOT r = s32[] constant(1)
})hlo");
  EXPECT_NE(eliminate_dead_code(graph).entry_computation().find("w"), kNoNode);
}

TEST(CommonSubexpressions, EqualConstantsBroadcastsAndReducesMerge) {
  // Exporters print a constant and a reducer anew for every use.
  const Graph graph = parse(R"hlo(
sum.1 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
sum.2 { c = f32[] parameter(0)  d = f32[] parameter(1)  ROOT t = f32[] add(c, d) }
max { c = f32[] parameter(0)  d = f32[] parameter(1)  ROOT t = f32[] maximum(c, d) }
ENTRY e {
  x = f32[2] parameter(0)
  z.1 = f32[] constant(0)
  z.2 = f32[] constant(0)
  m = f32[] constant(-0)
  r.1 = f32[] reduce(x, z.1), dimensions={0}, to_apply=sum.1
  r.2 = f32[] reduce(x, z.2), dimensions={0}, to_apply=sum.2
  r.3 = f32[] reduce(x, z.2), dimensions={0}, to_apply=max
  b.1 = f32[3] broadcast(r.1), dimensions={}, metadata={op_name="one"}
  b.2 = f32[3] broadcast(r.2), dimensions={}, metadata={op_name="other"}
  b.3 = f32[3] broadcast(r.3), dimensions={}
  b.4 = f32[3] broadcast(m), dimensions={}
  ROOT t = (f32[3], f32[3], f32[3], f32[3]) tuple(b.1, b.2, b.3, b.4)
})hlo");
  const Graph result = eliminate_common_subexpressions(graph);
  validate(result);
  EXPECT_EQ(listing(result), R"hlo(
sum.1
sum.2
max
x = f32[2] parameter(0)
z.1 = f32[] constant(0)
m = f32[] constant(-0)
r.1 = f32[] reduce(x, z.1), dimensions={0}, to_apply=sum.1
r.3 = f32[] reduce(x, z.1), dimensions={0}, to_apply=max
b.1 = f32[3] broadcast(r.1), dimensions={}, metadata={op_name="one"}
b.3 = f32[3] broadcast(r.3), dimensions={}
b.4 = f32[3] broadcast(m), dimensions={}
ROOT t = (f32[3], f32[3], f32[3], f32[3]) tuple(b.1, b.1, b.3, b.4)
)hlo");
}

TEST(CommonSubexpressions, AttributesKeepOpsApartAndEffectsAreNeverMerged) {
  const Graph graph = parse(R"hlo(
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  a = pred[2] compare(x, y), direction=LT
  b = pred[2] compare(x, y), direction=LE
  c = pred[2] compare(x, y), direction=LT, type=TOTALORDER
  l = f32[] constant(0)
  h = f32[] constant(1)
  u = f32[2] rng(l, h), distribution=rng_uniform
  v = f32[2] rng(l, h), distribution=rng_uniform
  ROOT t = (pred[2], pred[2], pred[2], f32[2], f32[2]) tuple(a, b, c, u, v)
})hlo");
  EXPECT_TRUE(equal(eliminate_common_subexpressions(graph), graph));
}

class Canonicalize : public ::testing::TestWithParam<const char*> {};

TEST_P(Canonicalize, IsIdempotentAndLeavesAValidGraphWithoutCalls) {
  const Graph graph = read_graph(std::string(STITCHWORK_SOURCE_DIR "/") + GetParam());
  const Graph once = canonicalize(graph);
  validate(once);
  EXPECT_TRUE(equal(canonicalize(once), once));
  EXPECT_TRUE(equal(parse_hlo(to_text(once), "again.hlo"), once));
  EXPECT_EQ(once.entry_computation().parameters.size(), graph.entry_computation().parameters.size());
  for (const Computation& computation : once.computations) {
    for (const Node& node : computation.nodes) EXPECT_NE(node.op, Op::kCall) << node.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Canonicalize,
                         ::testing::Values("datasets/bert_base.hlo", "datasets/bert_tiny.hlo",
                                           "datasets/fig7.hlo", "datasets/layer_norm.hlo",
                                           "tests/core/data/jax_every_form.hlo",
                                           "tests/core/data/jax_stack_frames.hlo",
                                           "tests/core/data/xla_optimised.hlo"));

TEST(Canonicalize, LeavesTheRunningExampleAsItIs) {
  const Graph graph = read_graph(STITCHWORK_SOURCE_DIR "/datasets/fig7.hlo");
  EXPECT_TRUE(equal(canonicalize(graph), graph));
}

TEST(InlineCalls, FusionsAreInlinedAndWhatTheyHeldIsRemembered) {
  const Graph graph = canonicalize(parse(R"hlo(
fused { a = f32[4] parameter(0)  b = f32[4] parameter(1)  s = f32[4] add(a, b)  n = f32[4] negate(s)
  ROOT t = (f32[4], f32[4]) tuple(n, s) }
other { a = f32[4] parameter(0)  n = f32[4] negate(a)  ROOT e = f32[4] exponential(n) }
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  f = (f32[4], f32[4]) fusion(x, y), kind=kLoop, calls=fused
  g = f32[4] get-tuple-element(f), index=0
  h = f32[4] get-tuple-element(f), index=1
  k = f32[4] fusion(h), kind=kInput, calls=other
  ROOT r = f32[4] multiply(g, k)
})hlo"));
  validate(graph);
  EXPECT_EQ(listing(graph), R"hlo(
x = f32[4] parameter(0)
y = f32[4] parameter(1)
s = f32[4] add(x, y)
n = f32[4] negate(s)
e = f32[4] exponential(n)
ROOT r = f32[4] multiply(n, e)
)hlo");
  // Both negate the sum: one op, which two kernels compute.
  EXPECT_EQ(graph.entry_computation().imported,
            (std::vector<ImportedKernel>{{"f", "kLoop", {2, 3}, {2, 3}}, {"k", "kInput", {3, 4}, {4}}}));
}

TEST(InlineCalls, CallsThatMultiplyBeyondAnyMemoryAreRefused) {
  std::string text = "c0 { ROOT p = f32[] parameter(0) }\n";
  for (int i = 1; i <= 40; ++i)
    text += fmt::format(
        "c{0} {{ p = f32[] parameter(0)  a = f32[] call(p), to_apply=c{1}  b = f32[] call(a), to_apply=c{1}  "
        "ROOT n = f32[] add(a, b) }}\n",
        i, i - 1);
  const Graph graph =
      parse(text + "ENTRY e { x = f32[] parameter(0)  ROOT c = f32[] call(x), to_apply=c40 }");
  EXPECT_THROW(inline_calls(graph), Error);
}

TEST(CommonSubexpressions, ConstantsWhoseValuesWereLeftOutStayApart) {
  const Graph graph = parse(R"hlo(
ENTRY e { a = f32[64] constant({...})  b = f32[64] constant({...})  ROOT s = f32[64] subtract(a, b) })hlo");
  EXPECT_TRUE(equal(eliminate_common_subexpressions(graph), graph));
  EXPECT_TRUE(equal(parse_hlo(to_text(graph), "again.hlo"), graph));
}

TEST(FoldTransposes, ProductsReadMatricesAsTheyAreStored) {
  OpTrace trace;
  const Graph result = fold_transposes(parse(R"hlo(
ENTRY e {
  x = f32[2,1,4] parameter(0)
  w = f32[5,4] parameter(1)
  v = f32[5,3] parameter(2)
  t = f32[4,5] transpose(w), dimensions={1,0}
  p = f32[2,1,5] dot(x, t), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  left = f32[4,3] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  kept = f32[3,5] transpose(v), dimensions={1,0}
  twice = f32[5,3] transpose(kept), dimensions={1,0}
  q = f32[4,3] dot(t, twice), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[2,1,5], f32[4,3], f32[4,3], f32[3,5]) tuple(p, left, q, kept)
}
)hlo"),
                                       &trace);
  const Computation& entry = result.entry_computation();
  EXPECT_EQ(entry.find("t"), kNoNode);
  EXPECT_EQ(entry.find("twice"), kNoNode);
  EXPECT_NE(entry.find("kept"), kNoNode);  // somebody else reads it
  const Node &p = entry.node(entry.find("p")), &q = entry.node(entry.find("q"));
  EXPECT_EQ(entry.node(p.operands[1]).name, "w");
  EXPECT_EQ(p.attrs.dot->rhs_contracting, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(entry.node(q.operands[0]).name, "w");
  EXPECT_EQ(q.attrs.dot->lhs_contracting, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(entry.node(q.operands[1]).name, "v");
  EXPECT_EQ(q.attrs.dot->rhs_contracting, (std::vector<std::int64_t>{0}));
  const std::vector<OpName> now = trace.now(result, {"e", "t"});
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(entry.node(entry.find(now[0].op)).op, Op::kDot);
  EXPECT_TRUE(equal(fold_transposes(result), result));
}

TEST(FoldTransposes, ComputeTheSame) {
  const Graph before = parse(R"hlo(
ENTRY e {
  x = f32[3,4] parameter(0)
  w = f32[5,4] parameter(1)
  xt = f32[4,3] transpose(x), dimensions={1,0}
  wt = f32[4,5] transpose(w), dimensions={1,0}
  ROOT p = f32[3,5] dot(xt, wt), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
)hlo");
  const Graph after = fold_transposes(before);
  EXPECT_EQ(after.entry_computation().nodes.size(), 3U);
  const std::vector<Literal> inputs = generate_inputs(before, 1);
  EXPECT_EQ(evaluate(before, inputs), evaluate(after, inputs));
}

TEST(FoldTransposes, BatchesAndDimensionsThatChangePlacesStay) {
  const Graph graph = parse(R"hlo(
ENTRY e {
  x = f32[2,3,4] parameter(0)
  y = f32[2,4,5] parameter(1)
  z = f32[3,2,4] parameter(2)
  u = f32[4,6] parameter(3)
  one = f32[1] parameter(4)
  xt = f32[2,4,3] transpose(x), dimensions={0,2,1}
  b = f32[2,3,5] dot(xt, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
  zt = f32[2,3,4] transpose(z), dimensions={1,0,2}
  c = f32[2,3,6] dot(zt, u), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ut = f32[6,4] transpose(u), dimensions={1,0}
  outer = f32[6,4,1] dot(ut, one), lhs_contracting_dims={}, rhs_contracting_dims={}
  ROOT r = (f32[2,3,5], f32[2,3,6], f32[6,4,1]) tuple(b, c, outer)
}
)hlo");
  EXPECT_TRUE(equal(fold_transposes(graph), graph));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
