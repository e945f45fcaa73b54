// Models as PyTorch exports them: Constant nodes, chains that compute shapes from a symbolic batch.
#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "core/hlo/hlo_text.h"
#include "core/onnx/onnx.h"
#include "core/onnx/open_model.h"
#include "core/passes/passes.h"
#include "tests/support/onnx_model.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr int kHidden = 8, kHeads = 2;

/// torch's view(batch, -1, ...): Shape, Gather, Unsqueeze, Concat, Reshape.
void view(OnnxModel& m, const std::string& x, const std::string& y, const std::vector<std::int64_t>& rest) {
  const std::string p = y + "/";
  m.node("Shape", {x}, {p + "Shape"});
  m.constant(p + "zero", {}, {0});
  m.node("Gather", {p + "Shape", p + "zero"}, {p + "batch"}, {{"axis", std::int64_t{0}}});
  m.constant(p + "axes", {1}, {0});
  m.node("Unsqueeze", {p + "batch", p + "axes"}, {p + "batch1"});
  m.constant(p + "rest", {static_cast<std::int64_t>(rest.size())}, rest);
  m.node("Concat", {p + "batch1", p + "rest"}, {p + "shape"}, {{"axis", std::int64_t{0}}});
  m.node("Reshape", {x, p + "shape"}, {y}, {{"allowzero", std::int64_t{0}}}).set_name("/" + y);
}

void linear(OnnxModel& m, const std::string& x, const std::string& y, const std::string& weight) {
  m.node("MatMul", {x, weight}, {y + "/MatMul"}).set_name("/" + y + "/MatMul");
  m.node("Add", {weight + ".bias", y + "/MatMul"}, {y});
}

void heads(OnnxModel& m, const std::string& x, const std::string& y, const std::vector<std::int64_t>& order) {
  view(m, x, y + "_split", {-1, kHeads, kHidden / kHeads});
  m.node("Transpose", {y + "_split"}, {y}, {{"perm", order}});
}

/// Pre-norm attention and MLP with an erf GELU, batch and sequence length open.
OnnxModel encoder_block(const std::vector<std::pair<std::string, Literal>>& weights) {
  OnnxModel m;
  m.input("x", {"batch", "sequence", kHidden});
  for (const auto& [name, literal] : weights) m.initializer(name, literal);
  m.node("LayerNormalization", {"x", "norm1", "norm1.bias"}, {"h"},
         {{"axis", std::int64_t{-1}}, {"epsilon", 1e-5}})
      .set_name("/norm1/LayerNormalization");
  for (const std::string name : {"q", "k", "v"}) linear(m, "h", name, "w" + name);
  heads(m, "q", "qh", {0, 2, 1, 3});
  heads(m, "k", "kh", {0, 2, 3, 1});
  heads(m, "v", "vh", {0, 2, 1, 3});
  m.node("MatMul", {"qh", "kh"}, {"scores"});
  m.constant("scale", 2.0F);
  m.node("Div", {"scores", "scale"}, {"scaled"});
  m.node("Softmax", {"scaled"}, {"attention"}, {{"axis", std::int64_t{-1}}}).set_name("/attention/Softmax");
  m.node("MatMul", {"attention", "vh"}, {"context"});
  m.node("Transpose", {"context"}, {"context_t"}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  view(m, "context_t", "merged", {-1, kHidden});
  linear(m, "merged", "projected", "wo");
  m.node("Add", {"x", "projected"}, {"residual"});
  m.node("LayerNormalization", {"residual", "norm2", "norm2.bias"}, {"h2"}, {{"axis", std::int64_t{-1}}});
  linear(m, "h2", "up", "w1");
  m.constant("sqrt2", 1.41421354F);
  m.node("Div", {"up", "sqrt2"}, {"up/sqrt2"});
  m.node("Erf", {"up/sqrt2"}, {"erf"});
  m.constant("one", 1.0F);
  m.node("Add", {"erf", "one"}, {"erf1"});
  m.node("Mul", {"up", "erf1"}, {"gelu2"});
  m.constant("half", 0.5F);
  m.node("Mul", {"gelu2", "half"}, {"gelu"});
  linear(m, "gelu", "down", "w2");
  m.node("Add", {"residual", "down"}, {"y"});
  m.output("y");
  return m;
}

/// The same by hand, weights as parameters in the order of the list, for batch 3 and sequence 5.
constexpr const char* kByHand = R"(HloModule encoder_block
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }
norm {
  x = f32[3,5,8] parameter(0)  scale = f32[8] parameter(1)  bias = f32[8] parameter(2)
  zero = f32[] constant(0)  n = f32[] constant(8)  e = f32[] constant(1e-5)
  ns = f32[3,5] broadcast(n), dimensions={}
  es = f32[3,5] broadcast(e), dimensions={}
  total = f32[3,5] reduce(x, zero), dimensions={2}, to_apply=sum
  mean = f32[3,5] divide(total, ns)
  means = f32[3,5,8] broadcast(mean), dimensions={0,1}
  c = f32[3,5,8] subtract(x, means)
  cc = f32[3,5,8] multiply(c, c)
  squares = f32[3,5] reduce(cc, zero), dimensions={2}, to_apply=sum
  variance = f32[3,5] divide(squares, ns)
  ve = f32[3,5] add(variance, es)
  r = f32[3,5] rsqrt(ve)
  rs = f32[3,5,8] broadcast(r), dimensions={0,1}
  normal = f32[3,5,8] multiply(c, rs)
  scales = f32[3,5,8] broadcast(scale), dimensions={2}
  biases = f32[3,5,8] broadcast(bias), dimensions={2}
  scaled = f32[3,5,8] multiply(normal, scales)
  ROOT y = f32[3,5,8] add(scaled, biases)
}
linear {
  x = f32[3,5,8] parameter(0)  w = f32[8,8] parameter(1)  b = f32[8] parameter(2)
  xw = f32[3,5,8] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  bs = f32[3,5,8] broadcast(b), dimensions={2}
  ROOT y = f32[3,5,8] add(bs, xw)
}
ENTRY main {
  x = f32[3,5,8] parameter(0)
  norm1 = f32[8] parameter(1)  norm1b = f32[8] parameter(2)
  wq = f32[8,8] parameter(3)  bq = f32[8] parameter(4)
  wk = f32[8,8] parameter(5)  bk = f32[8] parameter(6)
  wv = f32[8,8] parameter(7)  bv = f32[8] parameter(8)
  wo = f32[8,8] parameter(9)  bo = f32[8] parameter(10)
  norm2 = f32[8] parameter(11)  norm2b = f32[8] parameter(12)
  w1 = f32[8,16] parameter(13)  b1 = f32[16] parameter(14)
  w2 = f32[16,8] parameter(15)  b2 = f32[8] parameter(16)
  zero = f32[] constant(0)  lowest = f32[] constant(-inf)
  two = f32[] constant(2)  root2 = f32[] constant(1.41421354)  one = f32[] constant(1)  half = f32[] constant(0.5)
  h = f32[3,5,8] call(x, norm1, norm1b), to_apply=norm
  q = f32[3,5,8] call(h, wq, bq), to_apply=linear
  k = f32[3,5,8] call(h, wk, bk), to_apply=linear
  v = f32[3,5,8] call(h, wv, bv), to_apply=linear
  q4 = f32[3,5,2,4] reshape(q)
  k4 = f32[3,5,2,4] reshape(k)
  v4 = f32[3,5,2,4] reshape(v)
  scores = f32[3,2,5,5] dot(q4, k4), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  twos = f32[3,2,5,5] broadcast(two), dimensions={}
  scaled = f32[3,2,5,5] divide(scores, twos)
  largest = f32[3,2,5] reduce(scaled, lowest), dimensions={3}, to_apply=max
  largests = f32[3,2,5,5] broadcast(largest), dimensions={0,1,2}
  shifted = f32[3,2,5,5] subtract(scaled, largests)
  e = f32[3,2,5,5] exponential(shifted)
  total = f32[3,2,5] reduce(e, zero), dimensions={3}, to_apply=sum
  totals = f32[3,2,5,5] broadcast(total), dimensions={0,1,2}
  attention = f32[3,2,5,5] divide(e, totals)
  context = f32[3,2,5,4] dot(attention, v4), lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={1}
  turned = f32[3,5,2,4] transpose(context), dimensions={0,2,1,3}
  merged = f32[3,5,8] reshape(turned)
  projected = f32[3,5,8] call(merged, wo, bo), to_apply=linear
  residual = f32[3,5,8] add(x, projected)
  h2 = f32[3,5,8] call(residual, norm2, norm2b), to_apply=norm
  uw = f32[3,5,16] dot(h2, w1), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ub = f32[3,5,16] broadcast(b1), dimensions={2}
  up = f32[3,5,16] add(ub, uw)
  roots = f32[3,5,16] broadcast(root2), dimensions={}
  ones = f32[3,5,16] broadcast(one), dimensions={}
  halves = f32[3,5,16] broadcast(half), dimensions={}
  u = f32[3,5,16] divide(up, roots)
  f = f32[3,5,16] erf(u)
  f1 = f32[3,5,16] add(f, ones)
  g2 = f32[3,5,16] multiply(up, f1)
  gelu = f32[3,5,16] multiply(g2, halves)
  dw = f32[3,5,8] dot(gelu, w2), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  db = f32[3,5,8] broadcast(b2), dimensions={2}
  down = f32[3,5,8] add(db, dw)
  ROOT y = f32[3,5,8] add(residual, down)
}
)";

struct Block {
  Graph by_hand = parse_hlo(kByHand, "by_hand.hlo");
  std::vector<Literal> inputs = generate_inputs(by_hand, 1);
  OnnxModel model = encoder_block(weights());

  std::vector<std::pair<std::string, Literal>> weights() const {
    const std::vector<std::string> names = {"norm1", "norm1.bias", "wq", "wq.bias", "wk",    "wk.bias",
                                            "wv",    "wv.bias",    "wo", "wo.bias", "norm2", "norm2.bias",
                                            "w1",    "w1.bias",    "w2", "w2.bias"};
    std::vector<std::pair<std::string, Literal>> result;
    for (std::size_t i = 0; i < names.size(); ++i) result.emplace_back(names[i], inputs[i + 1]);
    return result;
  }
};

TEST(OnnxModels, AnEncoderBlockOfOpenBatchIsTheBlockByHand) {
  const Block block;
  const Graph graph = parse_onnx(block.model.bytes(), "block.onnx", {{{"batch", 3}, {"sequence", 5}}, {}});
  ASSERT_EQ(graph.entry_computation().parameters.size(), 1U);
  const std::vector<Literal> actual = evaluate(graph, std::span(block.inputs).first(1));
  const CheckResult check = Judge(block.by_hand, block.inputs).check(actual);
  EXPECT_TRUE(check.ok) << check.message;
}

TEST(OnnxModels, ChainsThatComputeShapesLeaveNothing) {
  const Block block;
  const Graph graph =
      canonicalize(parse_onnx(block.model.bytes(), "block.onnx", {{{"batch", 3}, {"sequence", 5}}, {}}));
  for (const Node& node : graph.entry_computation().nodes) {
    EXPECT_FALSE(is_integral(node.shape.dtype)) << to_text(graph, graph.entry_computation(), node);
    EXPECT_NE(node.op, Op::kConcatenate);
    EXPECT_NE(node.op, Op::kGather);
  }
}

TEST(OnnxModels, NodeNamesAreScopesAndNameOps) {
  const Block block;
  const Graph graph = parse_onnx(block.model.bytes(), "block.onnx", {{{"batch", 1}, {"sequence", 4}}, {}});
  const Computation& entry = graph.entry_computation();
  const NodeId softmax = entry.find("attention_Softmax");
  ASSERT_NE(softmax, kNoNode);
  EXPECT_EQ(entry.node(softmax).op, Op::kDivide);
  EXPECT_EQ(entry.node(softmax).metadata.op_type, "Softmax");
  EXPECT_EQ(entry.node(softmax).metadata.op_name, "attention/Softmax");
}

TEST(OnnxModels, TheTextOfAGraphIsReadBackAsTheSameGraph) {
  const Block block;
  const Graph graph = parse_onnx(block.model.bytes(), "block.onnx", {{{"batch", 2}, {"sequence", 3}}, {}});
  EXPECT_TRUE(equal(parse_hlo(to_text(graph), "printed.hlo"), graph));
}

TEST(OnnxModels, AnOpenDimensionIsAskedForByName) {
  const Block block;
  try {
    parse_onnx(block.model.bytes(), "block.onnx", {{{"batch", 3}}, {}});
    FAIL() << "sequence has no size";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "dimension 'sequence' of input 'x' has no size");
    EXPECT_EQ(error.hint(), "give it: --dim sequence=N");
  }
}

TEST(OnnxModels, AllOpenDimensionsAreAskedForAtOnceWithWhoHasThem) {
  const Block block;
  try {
    parse_onnx(block.model.bytes(), "block.onnx");
    FAIL() << "nothing has a size";
  } catch (const OpenModel& open) {
    EXPECT_EQ(open.file(), "block.onnx");
    EXPECT_EQ(open.hint(), "give them: --dim batch=N,sequence=N");
    using Kind = OnnxQuestion::Kind;
    const std::vector<OnnxQuestion> expected = {{Kind::kDimension, "batch", "x[0]", "1"},
                                                {Kind::kDimension, "sequence", "x[1]", "128"}};
    EXPECT_EQ(open.questions(), expected);
  }
}

TEST(OnnxModels, AMisspeltDimensionIsAnError) {
  const Block block;
  try {
    parse_onnx(block.model.bytes(), "block.onnx", {{{"batch", 3}, {"sequense", 5}}, {}});
    FAIL() << "there is no sequense";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "--dim sequense=5: the model has no such dimension");
    EXPECT_EQ(error.hint(), "did you mean sequence?");
  }
}

TEST(OnnxModels, TheHashIsOfTheFileAndOfItsDimensions) {
  const Block block;
  const auto hash = [&](std::int64_t batch) {
    return parse_onnx(block.model.bytes(), "block.onnx", {{{"batch", batch}, {"sequence", 5}}, {}})
        .source_sha256;
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_NE(hash(1), hash(2));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
