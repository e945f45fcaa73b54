// Results that are the next step's parameters, found by how optimizers write them.
#include "core/passes/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::map<std::string, std::size_t> by_parameter(const Graph& graph) {
  std::map<std::string, std::size_t> found;
  const Computation& computation = graph.entry_computation();
  for (const FedBack& one : training_state(graph))
    found[computation.node(computation.parameters[one.parameter]).name] = one.result;
  return found;
}

TEST(TrainingState, OfPlainGradientDescentIsEachVariable) {
  const std::map<std::string, std::size_t> found = by_parameter(testing::dataset("scrnn_tiny"));
  EXPECT_EQ(found, (std::map<std::string, std::size_t>{{"variables.a", 1},
                                                       {"variables.b", 2},
                                                       {"variables.p", 3},
                                                       {"variables.r", 4},
                                                       {"variables.u", 5},
                                                       {"variables.v", 6}}));
}

/// Adam's step of a variable reads its moments element by element, too.
TEST(TrainingState, OfAdamIsVariablesAndMoments) {
  const Graph graph = testing::graph_of(R"(HloModule m
ENTRY main {
  m = f32[4] parameter(0)
  g = f32[4,4] parameter(1)
  v = f32[4] parameter(2)
  w = f32[4] parameter(3)
  x = f32[4] parameter(4)
  count = s32[] parameter(5)
  one = s32[] constant(1)
  zero = f32[] constant(0)
  gradient = f32[4] dot(g, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  next_m = f32[4] add(m, gradient)
  square = f32[4] multiply(gradient, gradient)
  next_v = f32[4] add(v, square)
  root = f32[4] sqrt(next_v)
  step = f32[4] divide(next_m, root)
  next_w = f32[4] subtract(w, step)
  next_count = s32[] add(count, one)
  ROOT r = (f32[4], f32[4], f32[4], s32[]) tuple(next_w, next_m, next_v, next_count)
})");
  EXPECT_THAT(training_state(graph), ElementsAre(FedBack{0, 3}, FedBack{1, 0}, FedBack{2, 2}, FedBack{3, 5}));
}

/// An optimizer's step by itself: gradients are parameters, and reach both moments and the variable.
TEST(TrainingState, OfAdamAloneIsNotTheGradient) {
  const Graph graph = testing::graph_of(R"(HloModule m
ENTRY main {
  g = f32[4] parameter(0)
  m = f32[4] parameter(1)
  v = f32[4] parameter(2)
  w = f32[4] parameter(3)
  next_m = f32[4] add(m, g)
  square = f32[4] multiply(g, g)
  next_v = f32[4] add(v, square)
  root = f32[4] sqrt(next_v)
  step = f32[4] divide(next_m, root)
  next_w = f32[4] subtract(w, step)
  ROOT r = (f32[4], f32[4], f32[4]) tuple(next_m, next_v, next_w)
})");
  EXPECT_THAT(training_state(graph), ElementsAre(FedBack{0, 1}, FedBack{1, 2}, FedBack{2, 3}));
}

TEST(TrainingState, WhatTwoResultsAreMadeOfIsNeithers) {
  const Graph graph = testing::graph_of(R"(HloModule m
ENTRY main {
  a = f32[4] parameter(0)
  b = f32[8] parameter(1)
  n = f32[4] negate(a)
  t = f32[4] tanh(a)
  other = f32[2,4] reshape(b)
  ROOT r = (f32[4], f32[4], f32[4], f32[2,4]) tuple(n, t, a, other)
})");
  EXPECT_THAT(training_state(graph), IsEmpty());
}

/// Of each training step among the datasets: as many results are fed back as it has but for its losses, all
/// of their parameters' shapes.
TEST(TrainingState, OfTheDatasets) {
  for (const char* name :
       {"scrnn_tiny", "stacked_lstm_tiny", "adam_tiny", "adam_step_tiny", "bert_train_tiny"}) {
    SCOPED_TRACE(name);
    const Graph graph = testing::dataset(name);
    const Computation& computation = graph.entry_computation();
    const Node& root = computation.node(computation.root);
    const std::vector<FedBack> state = training_state(graph);
    std::size_t scalars = 0;
    for (const NodeId result : root.operands)
      scalars +=
          computation.node(result).shape.dims.empty() && is_floating(computation.node(result).shape.dtype)
              ? 1
              : 0;
    EXPECT_EQ(state.size() + scalars, root.operands.size());
    for (const FedBack& one : state)
      EXPECT_TRUE(computation.node(root.operands[one.result])
                      .shape.compatible(computation.node(computation.parameters[one.parameter]).shape));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
