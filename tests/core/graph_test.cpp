#include "core/graph/graph.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

Node node_of(Op op, std::string name, Shape shape, std::vector<NodeId> operands = {}) {
  Node node;
  node.op = op;
  node.name = std::move(name);
  node.shape = std::move(shape);
  node.operands = std::move(operands);
  return node;
}

Node parameter(std::int64_t number, Shape shape) {
  Node node = node_of(Op::kParameter, "p", std::move(shape));
  node.attrs.parameter_number = number;
  return node;
}

const Shape kPair = Shape::array(DType::kF32, {2});

Graph reducers() {
  return parse_hlo(R"(HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(b, a) }
twice { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, a) }
minus { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] subtract(a, b) }
deep { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] abs(b)  ROOT s = f32[] maximum(a, c) }
ENTRY e { ROOT x = f32[2] parameter(0) })",
                   "reducers.hlo");
}

TEST(Graph, ASimpleReducerIsOneCommutativeOpOfBothParameters) {
  const Graph graph = reducers();
  EXPECT_EQ(simple_reducer(graph, 0), Op::kAdd);
  EXPECT_EQ(simple_reducer(graph, 1), std::nullopt);
  EXPECT_EQ(simple_reducer(graph, 2), std::nullopt);
  EXPECT_EQ(simple_reducer(graph, 3), std::nullopt);
}

TEST(Graph, UsersAreListedOnceAndAscending) {
  const Graph graph = parse_hlo(R"(HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] multiply(x, x)
  ROOT z = f32[2] add(y, x)
})",
                                "users.hlo");
  using Users = std::vector<std::vector<NodeId>>;
  EXPECT_EQ(graph.entry_computation().users(), (Users{{1, 2}, {2}, {}}));
  EXPECT_EQ(graph.entry_computation().find("z"), 2);
  EXPECT_EQ(graph.entry_computation().find("w"), kNoNode);
}

TEST(ComputationBuilder, NamesBecomeUniqueByReplacingTheirNumber) {
  ComputationBuilder builder("c");
  const NodeId p = builder.add(parameter(0, kPair));
  builder.add(node_of(Op::kNegate, "add.1", kPair, {p}));
  builder.add(node_of(Op::kNegate, "add.1", kPair, {p}));
  builder.add(node_of(Op::kNegate, "", kPair, {p}));
  const NodeId root = builder.add(node_of(Op::kNegate, "", kPair, {p}));
  const Computation computation = std::move(builder).finish(root);
  std::vector<std::string> names;
  for (const Node& node : computation.nodes) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"p", "add.1", "add.2", "negate", "negate.1"}));
  EXPECT_EQ(computation.parameters, std::vector<NodeId>{p});
}

TEST(ComputationBuilder, AReservedNameIsGivenToNoOtherNode) {
  ComputationBuilder builder("c");
  builder.reserve("p");
  builder.add(parameter(1, kPair));
  const NodeId own = builder.add_reserved(parameter(0, kPair));
  EXPECT_EQ(builder.peek().node(0).name, "p.1");
  EXPECT_EQ(builder.peek().node(own).name, "p");
}

TEST(ComputationBuilder, AnOperandAddedLaterIsABug) {
  ComputationBuilder builder("c");
  EXPECT_THROW(builder.add(node_of(Op::kNegate, "n", kPair, {0})), InternalError);
}

/// The message of validating the graph after `change`.
template <typename Change>
std::string invalid(Change change) {
  Graph graph = parse_hlo(R"(HloModule m
f { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p) }
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] call(x), to_apply=f
  ROOT z = f32[2] add(y, x)
})",
                          "valid.hlo");
  validate(graph);
  change(graph);
  try {
    validate(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Validate, NamesTheNodeAndItsLine) {
  EXPECT_EQ(invalid([](Graph& g) { g.computations[1].nodes[2].shape = Shape::array(DType::kF32, {3}); }),
            "valid.hlo:6: 'z' is written f32[3], but add gives f32[2]; correct the shape or the operands");
  EXPECT_EQ(invalid([](Graph& g) { g.computations[1].nodes[1].operands = {2}; }),
            "valid.hlo:5: 'y' uses node 2, which does not come before it");
  EXPECT_EQ(invalid([](Graph& g) { g.computations[1].nodes[1].attrs.computations = {1}; }),
            "valid.hlo:5: 'y' calls a computation that does not come before its own");
  EXPECT_EQ(invalid([](Graph& g) { g.computations[1].nodes[2].name = "x"; }),
            "valid.hlo: computation 'e' has two nodes 'x'");
  EXPECT_EQ(invalid([](Graph& g) { g.computations[1].root = 7; }),
            "valid.hlo: computation 'e': its root is no node of it");
  EXPECT_EQ(invalid([](Graph& g) { g.computations[1].parameters.clear(); }),
            "valid.hlo: computation 'e': its list of parameters is not that of its nodes");
  EXPECT_EQ(invalid([](Graph& g) { g.computations[1].name = "f"; }), "valid.hlo: two computations 'f'");
}

TEST(Equal, SeesEveryPartButNotWhereTheGraphWasRead) {
  const Graph graph = reducers();
  const auto differs = [&](auto change) {
    Graph other = graph;
    change(other);
    return !equal(graph, other);
  };
  EXPECT_FALSE(differs([](Graph& g) { g.source = "elsewhere"; }));
  EXPECT_FALSE(differs([](Graph& g) { g.computations[0].nodes[0].line = 99; }));
  EXPECT_TRUE(differs([](Graph& g) { g.name = "n"; }));
  EXPECT_TRUE(differs([](Graph& g) { g.attributes.emplace_back("a", "b"); }));
  EXPECT_TRUE(differs([](Graph& g) { g.computations[0].name = "n"; }));
  EXPECT_TRUE(differs([](Graph& g) { g.computations[0].nodes[2].op = Op::kMultiply; }));
  EXPECT_TRUE(differs([](Graph& g) { g.computations[0].nodes[2].operands = {0, 1}; }));
  EXPECT_TRUE(differs([](Graph& g) { g.computations[0].nodes[2].metadata.op_name = "s"; }));
  EXPECT_TRUE(differs([](Graph& g) { g.computations[0].nodes[2].attrs.other.emplace_back("a", "b"); }));
}

}  // namespace TEST_FILE
}  // namespace stitchwork
