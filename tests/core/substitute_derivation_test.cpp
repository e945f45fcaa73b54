// Derivations: worked examples, replay, tidying datasets, what is said of wrong names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"
#include "core/substitute/derivation.h"
#include "core/substitute/tidy.h"
#include "tests/core/substitute_support.h"
#include "tests/support/golden.h"

namespace stitchwork {
namespace TEST_FILE {

using rewriting::Derivation;
using rewriting::Rewrite;
using rewriting::rule_named;

Graph dataset_graph(const std::string& name) {
  const std::string path = std::string(STITCHWORK_SOURCE_DIR) + "/datasets/" + name + ".hlo";
  return canonicalize(read_graph(std::filesystem::exists(path) ? path : path + ".gz"));
}

Graph entry_graph(const std::string& body) {
  return canonicalize(
      parse_hlo("HloModule example\n"
                "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
                "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] maximum(a, b) }\n"
                "ENTRY main {\n" +
                    body + "}\n",
                "example.hlo"));
}

const char* const kSoftmax = R"(
  q = f32[512,64] parameter(0)
  k = f32[64,512] parameter(1)
  v = f32[512,64] parameter(2)
  scores = f32[512,512] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  lowest = f32[] constant(-inf)
  zero = f32[] constant(0)
  mx = f32[512] reduce(scores, lowest), dimensions={1}, to_apply=max
  sub = f32[512,512] subtract(scores, mx_all)
  ex = f32[512,512] exponential(sub)
  sum = f32[512] reduce(ex, zero), dimensions={1}, to_apply=add
  p = f32[512,512] divide(ex, sum_all)
  ROOT o = f32[512,64] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)";

/// E1 of the worked examples (docs/rewriting.md); broadcasts of reductions written out.
std::string softmax_between_products() {
  std::string text = kSoftmax;
  for (const auto& [before, line] :
       {std::pair{"  sub = ", "  mx_all = f32[512,512] broadcast(mx), dimensions={0}\n"},
        std::pair{"  p = ", "  sum_all = f32[512,512] broadcast(sum), dimensions={0}\n"}})
    text.insert(text.find(before), line);
  return text;
}

/// Steps and entry computation, for a golden; both graphs give the same.
void expect_example(const std::string& golden, const Graph& model, const std::vector<std::string>& rules) {
  Derivation derivation(model);
  for (const std::string& rule : rules) EXPECT_GT(derivation.apply_everywhere(rule_named(rule)), 0) << rule;
  derivation.tidy();
  validate(derivation.result().graph);
  testing::expect_consistent(derivation.result());
  std::string text = to_text(derivation.result().graph);
  text = std::regex_replace(text, std::regex(", metadata=\\{[^\n]*\\}"), "");
  expect_golden(golden, rewriting::to_text(derivation.result().steps) + "\n" + testing::entry_of(text));
  EXPECT_EQ(to_text(rewriting::replay(model, derivation.result().steps).graph),
            to_text(derivation.result().graph));
  const std::vector<Literal> inputs = generate_inputs(model, 1);
  const CheckResult check = Judge(model, inputs).check(evaluate(derivation.result().graph, inputs));
  EXPECT_TRUE(check.ok) << check.message;
}

TEST(SubstituteDerivation, TheSumOfASoftmaxJoinsTheProductBehindIt) {
  expect_example("rewrite_softmax_dot.txt", entry_graph(softmax_between_products()), {"softmax-dot"});
  expect_example("rewrite_softmax_block.txt", dataset_graph("softmax_block"), {"softmax-dot"});
}

TEST(SubstituteDerivation, BothSoftmaxesOfLinearAttentionMeetTheirProducts) {
  expect_example("rewrite_linear_attention.txt", dataset_graph("linear_attention_tiny"), {"softmax-dot"});
}

TEST(SubstituteDerivation, QuadraticAttentionBecomesLinear) {
  expect_example("rewrite_quadratic_attention.txt", entry_graph(R"(
  q = f32[1024,32] parameter(0)
  k = f32[1024,32] parameter(1)
  v = f32[1024,32] parameter(2)
  zero = f32[] constant(0)
  zeros = f32[1024,32] broadcast(zero), dimensions={}
  fq = f32[1024,32] maximum(q, zeros)
  fk = f32[1024,32] maximum(k, zeros)
  a = f32[1024,1024] dot(fq, fk), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  rows = f32[1024] reduce(a, zero), dimensions={1}, to_apply=add
  rows_all = f32[1024,1024] broadcast(rows), dimensions={0}
  p = f32[1024,1024] divide(a, rows_all)
  ROOT o = f32[1024,32] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)"),
                 {"linear-attention"});
}

TEST(SubstituteDerivation, ASumBehindAProductGoesBeforeIt) {
  expect_example("rewrite_reduce_of_dot.txt", entry_graph(R"(
  x = f32[1024,256] parameter(0)
  w = f32[256,1000] parameter(1)
  zero = f32[] constant(0)
  y = f32[1024,1000] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[1000] reduce(y, zero), dimensions={0}, to_apply=add
)"),
                 {"reduce-of-dot"});
}

TEST(SubstituteDerivation, ThreeProductsOfOneArrayAreOne) {
  expect_example("rewrite_three_products.txt", entry_graph(R"(
  x = f32[1024,256] parameter(0)
  wq = f32[256,256] parameter(1)
  wk = f32[256,256] parameter(2)
  wv = f32[256,256] parameter(3)
  q = f32[1024,256] dot(x, wq), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k = f32[1024,256] dot(x, wk), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  v = f32[1024,256] dot(x, wv), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT all = (f32[1024,256], f32[1024,256], f32[1024,256]) tuple(q, k, v)
)"),
                 {"dot-merge-free"});
}

TEST(SubstituteDerivation, UntouchedOpsKeepTheirNamesAndNewOnesNameTheirOrigin) {
  Derivation derivation(entry_graph(softmax_between_products()));
  ASSERT_TRUE(derivation.apply(rule_named("scale-out-of-dot"), "main", "o"));
  const rewriting::RewrittenGraph& now = derivation.result();
  const Computation& entry = now.graph.entry_computation();
  for (const char* kept : {"q", "scores", "mx", "ex", "sum"}) EXPECT_NE(entry.find(kept), kNoNode) << kept;
  for (const char* gone : {"o", "p", "sum_all"}) EXPECT_EQ(entry.find(gone), kNoNode) << gone;
  const NodeId made = entry.find("o.divide");
  ASSERT_NE(made, kNoNode);
  const Computation& model = now.model->entry_computation();
  const rewriting::Origins& origins = now.origins[static_cast<std::size_t>(now.graph.entry)];
  EXPECT_EQ(origins.of[static_cast<std::size_t>(made)],
            (std::vector<NodeId>{model.find("p"), model.find("o")}));
  EXPECT_EQ(origins.now[static_cast<std::size_t>(model.find("o"))], made);
  EXPECT_EQ(origins.now[static_cast<std::size_t>(model.find("p"))], kNoNode);
}

TEST(SubstituteDerivation, ARuleInALoopsBodyLeavesTheOtherComputations) {
  const Graph model = canonicalize(parse_hlo(R"(HloModule loop
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
body {
  state = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[4,8] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = f32[] constant(0)
  rows = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
  wide = f32[4,8] broadcast(rows), dimensions={0}
  half = f32[] constant(0.5)
  halves = f32[4,8] broadcast(half), dimensions={}
  y = f32[4,8] multiply(wide, halves)
  ROOT after = (s32[], f32[4,8]) tuple(next, y)
}
condition {
  state = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[4,8] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[4,8]) tuple(zero, x)
  loop = (s32[], f32[4,8]) while(start), condition=condition, body=body
  ROOT y = f32[4,8] get-tuple-element(loop), index=1
}
)",
                                             "loop.hlo"));
  Derivation derivation(model);
  EXPECT_EQ(derivation.apply_everywhere(rule_named("reduce-as-dot")), 1);
  EXPECT_EQ(derivation.apply_everywhere(rule_named("broadcast-down")), 1);
  // A sum as a product and back needs a reducer: the one there is.
  EXPECT_EQ(derivation.apply_everywhere(rule_named("dot-as-product")), 0);
  for (const Rewrite& step : derivation.result().steps) EXPECT_EQ(step.computation, "body");
  validate(derivation.result().graph);
  const std::vector<Literal> inputs = generate_inputs(model, 1);
  const CheckResult check = Judge(model, inputs).check(evaluate(derivation.result().graph, inputs));
  EXPECT_TRUE(check.ok) << check.message;
  EXPECT_EQ(to_text(rewriting::replay(model, derivation.result().steps).graph),
            to_text(derivation.result().graph));
}

TEST(SubstituteDerivation, AReducerThatIsMissingIsAdded) {
  const Graph model = parse_hlo(
      "HloModule m\nENTRY main {\n  x = bf16[8] parameter(0)\n  y = bf16[8] parameter(1)\n"
      "  ROOT s = bf16[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n}\n",
      "m.hlo");
  Derivation derivation(model);
  ASSERT_TRUE(derivation.apply(rule_named("dot-as-product"), "main", "s"));
  validate(derivation.result().graph);
  EXPECT_EQ(derivation.result().graph.computations.size(), 2u);
  EXPECT_EQ(derivation.result().graph.entry, 1);
  testing::expect_consistent(derivation.result());
}

TEST(SubstituteDerivation, TidyEndsAndKeepsEveryBitOfSmallDatasets) {
  int tidied_ones = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(STITCHWORK_SOURCE_DIR) + "/datasets")) {
    const std::string name = file.path().stem().string();
    if (file.path().extension() != ".hlo" || !name.ends_with("_tiny")) continue;
    SCOPED_TRACE(name);
    const Graph model = dataset_graph(name);
    if (model.entry_computation().size() > 1500) continue;
    Derivation derivation(model);
    tidied_ones += derivation.tidy() > 0 ? 1 : 0;
    validate(derivation.result().graph);
    testing::expect_consistent(derivation.result());
    EXPECT_EQ(derivation.tidy(), 0);
    const std::vector<Literal> inputs = generate_inputs(model, 1);
    EXPECT_EQ(testing::difference(evaluate(derivation.result().graph, inputs), evaluate(model, inputs)), "");
  }
  EXPECT_GT(tidied_ones, 20);
}

TEST(SubstituteDerivation, TheDocumentedTableIsTheTable) {
  const std::string page = read_file(std::string(STITCHWORK_SOURCE_DIR) + "/docs/rewriting.md");
  const auto cell = [](std::string_view text) {
    return std::regex_replace(std::string(text), std::regex("\\|"), "\\|");
  };
  for (const rewriting::Rule& rule : rewriting::rules()) {
    const std::string kind = fmt::format("{}{}{}", rewriting::name(rule.exactness), rule.tidy ? ", tidy" : "",
                                         rule.steps != nullptr ? ", macro" : "");
    EXPECT_THAT(page, ::testing::HasSubstr(fmt::format("| `{}` | {} | {} | {} |\n", rule.name,
                                                       cell(rule.summary), cell(rule.holds), kind)));
  }
}

TEST(SubstituteDerivation, StepsOfAnotherModelAreRefused) {
  const Graph model = entry_graph(softmax_between_products());
  const auto message = [&](const Rewrite& step) {
    try {
      rewriting::replay(model, std::vector{step});
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  EXPECT_EQ(message({"scale-out-of-dot", "main", {{"o", "q"}}}),
            "step scale-out-of-dot at o, q does not fit the model: it holds at o, p");
  EXPECT_EQ(message({"scale-out-of-dot", "main", {{"scores"}}}),
            "step scale-out-of-dot at scores does not fit the model: it does not hold there");
  EXPECT_EQ(message({"scale-out-of-dot", "main", {{"dot.7", "p"}}}),
            "step scale-out-of-dot at dot.7, p does not fit the model: there is no op 'dot.7'");
  EXPECT_EQ(message({"scale-out-of-dot", "other", {{"o"}}}),
            "step scale-out-of-dot at o does not fit the model: there is no computation 'other'");
  EXPECT_EQ(message({"scale-of-dot", "main", {{"o"}}}), "no rule is called 'scale-of-dot'");
}

}  // namespace TEST_FILE
}  // namespace stitchwork
