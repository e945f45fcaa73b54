// Operand maps against the reference evaluator: an op that only moves elements must give, at every output
// index, the operand element its map names.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/evaluate/evaluator.h"
#include "core/hlo/hlo_text.h"
#include "core/index/index_map.h"

namespace stitchwork {
namespace TEST_FILE {

using Dims = std::vector<std::int64_t>;

std::int64_t flatten(const Dims& at, const Dims& dims) {
  std::int64_t linear = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) linear = linear * dims[i] + at[i];
  return linear;
}

Dims unflatten(std::int64_t linear, const Dims& dims) {
  Dims at(dims.size());
  for (std::size_t i = dims.size(); i-- > 0;) {
    at[i] = linear % dims[i];
    linear /= dims[i];
  }
  return at;
}

/// Parameter `n` holds n * 1000 + linear index + 1, if it is floating; integers hold what `indices` gives.
std::vector<Literal> labelled_inputs(const Computation& entry, const std::vector<std::int64_t>& indices) {
  std::vector<Literal> inputs;
  std::size_t next = 0;
  for (std::size_t p = 0; p < entry.parameters.size(); ++p) {
    const Shape& shape = entry.node(entry.parameters[p]).shape;
    Literal literal = Literal::zeros(shape);
    for (std::int64_t i = 0; i < shape.elements_count(); ++i)
      literal.set_double(i, is_floating(shape.dtype)
                                ? static_cast<double>(p) * 1000 + static_cast<double>(i) + 1
                                : static_cast<double>(indices[next++ % indices.size()]));
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

void expect_moves_as_mapped(const std::string& body, const std::vector<std::int64_t>& indices = {0}) {
  const Graph graph = parse_hlo("HloModule m\nENTRY e {\n" + body + "\n}\n", "test.hlo");
  const Computation& entry = graph.entry_computation();
  const Node& root = entry.node(entry.root);
  const std::vector<Literal> inputs = labelled_inputs(entry, indices);
  const Literal output = evaluate(graph, inputs).front();
  const auto input_of = [&](NodeId id) -> const Literal& {
    return inputs[static_cast<std::size_t>(entry.node(id).attrs.parameter_number)];
  };
  for (std::int64_t p = 0; p < output.shape.elements_count(); ++p) {
    const Dims at = unflatten(p, output.shape.dims);
    // Later operands are written over earlier ones (dynamic-update-slice), pad's value is the fallback.
    std::optional<double> expected;
    for (std::size_t i = 0; i < root.operands.size(); ++i) {
      const Literal& operand = input_of(root.operands[i]);
      if (!is_floating(operand.shape.dtype)) continue;
      const std::optional<IndexMap> map = operand_map(entry, entry.root, static_cast<int>(i));
      ASSERT_TRUE(map) << body;
      Dims runtime;
      for (const RuntimeVariable& variable : map->runtime) {
        const Literal& source = input_of(variable.op);
        Dims index;
        for (const IndexExpr& e : variable.index) index.push_back(evaluate(e, at, {}, runtime));
        const auto value = source.get_int(flatten(index, source.shape.dims));
        runtime.push_back(std::clamp(value, variable.range.lo, variable.range.hi));
      }
      bool applies = true;
      for (const Constraint& c : map->constraints)
        applies = applies && c.range.contains(evaluate(c.expr, at, {}, runtime));
      const bool fallback = root.op == Op::kPad && i == 1 && expected;
      if (!applies || fallback) continue;
      Dims from;
      for (const IndexExpr& e : map->results) from.push_back(evaluate(e, at, {}, runtime));
      expected = operand.get_double(flatten(from, operand.shape.dims));
    }
    ASSERT_EQ(output.get_double(p), expected) << body << " at " << p;
  }
}

/// An op that sums, over its symbols, the product of what its maps read (reduce: of one operand).
void expect_sums_as_mapped(const std::string& body, int operands) {
  const Graph graph = parse_hlo(
      "HloModule m\nsum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
      "ENTRY e {\n" +
          body + "\n}\n",
      "test.hlo");
  const Computation& entry = graph.entry_computation();
  const std::vector<Literal> inputs = labelled_inputs(entry, {0});
  const Literal output = evaluate(graph, inputs).front();
  std::vector<IndexMap> maps;
  for (int i = 0; i < operands; ++i) maps.push_back(operand_map(entry, entry.root, i).value());
  const Dims& symbols = maps.front().symbols;
  std::int64_t points = 1;
  for (const std::int64_t n : symbols) points *= n;
  for (std::int64_t p = 0; p < output.shape.elements_count(); ++p) {
    const Dims at = unflatten(p, output.shape.dims);
    double sum = 0;
    for (std::int64_t s = 0; s < points; ++s) {
      const Dims symbol = unflatten(s, symbols);
      double product = 1;
      for (int i = 0; i < operands; ++i) {
        const IndexMap& map = maps[static_cast<std::size_t>(i)];
        for (const Constraint& c : map.constraints)
          if (!c.range.contains(evaluate(c.expr, at, symbol))) product = 0;
        if (product == 0) break;
        Dims from;
        for (const IndexExpr& e : map.results) from.push_back(evaluate(e, at, symbol));
        const Literal& operand = inputs[static_cast<std::size_t>(i)];
        product *= operand.get_double(flatten(from, operand.shape.dims));
      }
      sum += product;
    }
    ASSERT_FLOAT_EQ(output.get_double(p), sum) << body << " at " << p;
  }
}

TEST(OperandMapSemantics, ReductionsAndProducts) {
  expect_sums_as_mapped(
      "a = f32[4,5,6] parameter(0)  z = f32[] constant(0)\n"
      "ROOT r = f32[5] reduce(a, z), dimensions={2,0}, to_apply=sum",
      1);
  expect_sums_as_mapped(
      "a = f32[7,2,3,5] parameter(0)  b = f32[7,5,4] parameter(1)\n"
      "ROOT r = f32[7,2,3,4] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3}, "
      "rhs_contracting_dims={1}",
      2);
  expect_sums_as_mapped(
      "a = f32[2,3,4] parameter(0)  b = f32[4,5,3] parameter(1)\n"
      "ROOT r = f32[2,5] dot(a, b), lhs_contracting_dims={2,1}, rhs_contracting_dims={0,2}",
      2);
}

TEST(OperandMapSemantics, Windows) {
  const auto window = [](const std::string& out, const std::string& attribute) {
    expect_sums_as_mapped("a = f32[3,8] parameter(0)  z = f32[] constant(0)\nROOT r = f32[" + out +
                              "] reduce-window(a, z), window={" + attribute + "}, to_apply=sum",
                          1);
  };
  window("3,4", "size=1x3 stride=1x2 pad=0_0x1_0");
  window("2,6", "size=2x2 rhs_dilate=1x2");
  window("3,15", "size=1x1 lhs_dilate=1x2");
  window("4,17", "size=1x2 pad=0_1x1_2 lhs_dilate=1x2");
}

TEST(OperandMapSemantics, LayoutOps) {
  expect_moves_as_mapped("a = f32[5] parameter(0)  ROOT r = f32[3,5,2] broadcast(a), dimensions={1}");
  expect_moves_as_mapped("a = f32[6,4] parameter(0)  ROOT r = f32[8,3] reshape(a)");
  expect_moves_as_mapped("a = f32[2,3,5] parameter(0)  ROOT r = f32[5,2,3] transpose(a), dimensions={2,0,1}");
  expect_moves_as_mapped("a = f32[10,8] parameter(0)  ROOT r = f32[3,8] slice(a), slice={[2:8:2], [0:8]}");
  expect_moves_as_mapped("a = f32[4,3] parameter(0)  ROOT r = f32[4,3] reverse(a), dimensions={0,1}");
}

TEST(OperandMapSemantics, GuardedOps) {
  expect_moves_as_mapped(
      "a = f32[2,3] parameter(0)  b = f32[2,4] parameter(1)  c = f32[2,1] parameter(2)\n"
      "ROOT r = f32[2,8] concatenate(a, b, c), dimensions={1}");
  expect_moves_as_mapped(
      "a = f32[4,3] parameter(0)  v = f32[] parameter(1)  ROOT r = f32[12,3] pad(a, v), padding=2_3_1x-1_1");
  expect_moves_as_mapped(
      "a = f32[4,3] parameter(0)  v = f32[] parameter(1)  ROOT r = f32[9,3] pad(a, v), padding=-1_0_2x0_0");
}

TEST(OperandMapSemantics, GathersClampTheirIndices) {
  const std::vector<std::int64_t> indices{3, -2, 50, 0, 7, 1, 2, 9, -1, 5};
  expect_moves_as_mapped(
      "a = f32[8,3] parameter(0)  i = s32[5,1] parameter(1)\n"
      "ROOT r = f32[5,3] gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=1, slice_sizes={1,3}",
      indices);
  expect_moves_as_mapped(
      "a = f32[9,8,7] parameter(0)  i = s32[2,5] parameter(1)\n"
      "ROOT r = f32[5,3,2] gather(a, i), offset_dims={1,2}, collapsed_slice_dims={1}, start_index_map={2,1}, "
      "index_vector_dim=0, slice_sizes={3,1,2}",
      indices);
  expect_moves_as_mapped(
      "a = f32[2,8] parameter(0)  i = s32[2,5] parameter(1)\n"
      "ROOT r = f32[2,5] gather(a, i), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
      "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}",
      indices);
}

TEST(OperandMapSemantics, DynamicSlicesClampTheirStarts) {
  for (const std::int64_t start : {-3, 0, 2, 6, 99}) {
    expect_moves_as_mapped(
        "a = f32[10,8] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)\n"
        "ROOT r = f32[4,5] dynamic-slice(a, i, j), dynamic_slice_sizes={4,5}",
        {start, start / 2});
    expect_moves_as_mapped(
        "a = f32[10,8] parameter(0)  u = f32[4,5] parameter(1)  i = s32[] parameter(2)  j = s32[] "
        "parameter(3)\n"
        "ROOT r = f32[10,8] dynamic-update-slice(a, u, i, j)",
        {start, start / 2});
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
