#include "analysis/facts/gemm.h"

#include <gtest/gtest.h>

#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "tests/runtime/products.h"
#include "tests/support/graphs.h"

namespace stitchwork {
namespace TEST_FILE {

struct Case {
  const char* name;
  const char* body;
};

class GemmOf : public ::testing::TestWithParam<Case> {};

TEST_P(GemmOf, ComputesTheDot) {
  const Graph graph = testing::graph_of(GetParam().body);
  const std::vector<Literal> inputs = generate_inputs(graph, 3);
  const Computation& entry = graph.entry_computation();
  const Node& dot = entry.node(entry.root);
  const auto gemm = gemm_of(dot, entry.node(dot.operands[0]), entry.node(dot.operands[1]));
  ASSERT_TRUE(gemm.has_value());
  EXPECT_TRUE(gemm->a_row == 1 || gemm->a_col == 1);
  EXPECT_TRUE(gemm->b_row == 1 || gemm->b_col == 1);
  EXPECT_GE(gemm->c_row, gemm->n);
  const Literal made = testing::multiplied(*gemm, inputs[0], inputs[1], dot.shape);
  const CheckResult check = Judge(graph, inputs).check({{made}});
  EXPECT_TRUE(check.ok) << check.message;
}

INSTANTIATE_TEST_SUITE_P(
    Dots, GemmOf,
    ::testing::Values(
        Case{"plain",
             "a = f32[5,7] parameter(0)\n b = f32[7,3] parameter(1)\n ROOT d = f32[5,3] dot(a, b), "
             "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
        Case{"both_transposed",
             "a = f32[7,5] parameter(0)\n b = f32[3,7] parameter(1)\n ROOT d = f32[5,3] dot(a, b), "
             "lhs_contracting_dims={0}, rhs_contracting_dims={1}"},
        Case{"rows_of_two_dimensions",
             "a = f32[4,5,7] parameter(0)\n b = f32[7,2,3] parameter(1)\n ROOT d = f32[4,5,2,3] dot(a, b), "
             "lhs_contracting_dims={2}, rhs_contracting_dims={0}"},
        Case{"sums_over_two_dimensions",
             "a = f32[4,5,7] parameter(0)\n b = f32[5,7,3] parameter(1)\n ROOT d = f32[4,3] dot(a, b), "
             "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"},
        Case{"sums_named_the_other_way_round",
             "a = f32[4,5,7] parameter(0)\n b = f32[5,7,3] parameter(1)\n ROOT d = f32[4,3] dot(a, b), "
             "lhs_contracting_dims={2,1}, rhs_contracting_dims={1,0}"},
        Case{"batch",
             "a = f32[6,5,7] parameter(0)\n b = f32[6,7,3] parameter(1)\n ROOT d = f32[6,5,3] dot(a, b), "
             "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"},
        Case{
            "heads_behind_the_sequence",
            "a = f32[2,5,3,7] parameter(0)\n b = f32[2,4,3,7] parameter(1)\n ROOT d = f32[2,3,5,4] dot(a, "
            "b), "
            "lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}"},
        Case{
            "values_of_attention",
            "a = f32[2,3,5,4] parameter(0)\n b = f32[2,4,3,7] parameter(1)\n ROOT d = f32[2,3,5,7] dot(a, "
            "b), "
            "lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={1}"},
        Case{"rows_apart",
             "a = f32[4,7,5] parameter(0)\n b = f32[7,3] parameter(1)\n ROOT d = f32[4,5,3] dot(a, b), "
             "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
        Case{"matrix_and_vector",
             "a = f32[5,7] parameter(0)\n b = f32[7] parameter(1)\n ROOT d = f32[5] dot(a, b), "
             "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
        Case{"vector_and_matrix",
             "a = f32[7] parameter(0)\n b = f32[7,4] parameter(1)\n ROOT d = f32[4] dot(a, b), "
             "lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
        Case{"vectors",
             "a = f32[7] parameter(0)\n b = f32[7] parameter(1)\n ROOT d = f32[] dot(a, b), "
             "lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
        Case{"outer_product",
             "a = f32[5] parameter(0)\n b = f32[4] parameter(1)\n ROOT d = f32[5,4] dot(a, b)"},
        Case{"one_col",
             "a = f32[6,5,1] parameter(0)\n b = f32[6,1,3] parameter(1)\n ROOT d = f32[6,5,3] dot(a, b), "
             "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"}),
    [](const auto& info) { return std::string(info.param.name); });

/// The transpose at the root, of a dot of the parameters, by one product that stores it.
void expect_transposed(const std::string& text, bool exchanged) {
  SCOPED_TRACE(text);
  const Graph graph = testing::graph_of(text);
  const std::vector<Literal> inputs = generate_inputs(graph, 3);
  const Computation& entry = graph.entry_computation();
  const Node &root = entry.node(entry.root), &dot = entry.node(root.operands[0]);
  const auto gemm =
      gemm_of(dot, entry.node(dot.operands[0]), entry.node(dot.operands[1]), root.attrs.dimensions);
  ASSERT_TRUE(gemm.has_value());
  EXPECT_EQ(gemm->exchanged, exchanged);
  const Literal made =
      testing::multiplied(*gemm, inputs[exchanged ? 1 : 0], inputs[exchanged ? 0 : 1], root.shape);
  const CheckResult check = Judge(graph, inputs).check({{made}});
  EXPECT_TRUE(check.ok) << check.message;
}

TEST(GemmOf, ATransposeIsStoredByTheProductsStrides) {
  expect_transposed(
      "a = f32[5,7] parameter(0)\n b = f32[7,3] parameter(1)\n d = f32[5,3] dot(a, b), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT t = f32[3,5] transpose(d), dimensions={1,0}",
      true);
  // Heads of attention, behind the sequence again.
  expect_transposed(
      "a = f32[3,5,7] parameter(0)\n b = f32[3,7,4] parameter(1)\n d = f32[3,5,4] dot(a, b), "
      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
      "ROOT t = f32[5,3,4] transpose(d), dimensions={1,0,2}",
      false);
  expect_transposed(
      "a = f32[1,4,3,7] parameter(0)\n b = f32[1,3,5,7] parameter(1)\n d = f32[1,3,4,5] dot(a, b), "
      "lhs_batch_dims={0,2}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}\n"
      "ROOT t = f32[1,5,3,4] transpose(d), dimensions={0,3,1,2}",
      true);
}

TEST(GemmOf, ATransposeWithoutNeighboursInARowIsNoProduct) {
  const Graph graph = testing::graph_of(
      "a = f32[3,5,7] parameter(0)\n b = f32[3,7,4] parameter(1)\n d = f32[3,5,4] dot(a, b), "
      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
      "ROOT t = f32[5,4,3] transpose(d), dimensions={1,2,0}");
  const Computation& entry = graph.entry_computation();
  const Node& root = entry.node(entry.root);
  EXPECT_FALSE(gemm_of(entry.node(root.operands[0]), entry.node(0), entry.node(1), root.attrs.dimensions));
}

TEST(GemmOf, SumsThatLieApartDifferentlyAreNoProduct) {
  const Graph graph = testing::graph_of(
      "a = f32[4,5,7] parameter(0)\n b = f32[7,5,3] parameter(1)\n ROOT d = f32[4,3] dot(a, b), "
      "lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}");
  const Computation& entry = graph.entry_computation();
  EXPECT_FALSE(gemm_of(entry.node(entry.root), entry.node(0), entry.node(1)).has_value());
}

}  // namespace TEST_FILE
}  // namespace stitchwork
