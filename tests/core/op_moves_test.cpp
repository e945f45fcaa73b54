// `moves_elements` of the op table against what the evaluator does: of a small example of each op.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/evaluate/evaluator.h"
#include "core/graph/op.h"
#include "core/hlo/hlo_text.h"

namespace stitchwork {
namespace TEST_FILE {

/// What the op is called on, where that is not one or several of x by itself; and its attributes.
const std::map<Op, std::string> kCalls = {
    {Op::kDomain, R"(f32[2,3] domain(x), domain={kind="sharding", entry={replicated}, exit={replicated}})"},
    {Op::kAddDependency, "f32[2,3] add-dependency(x, token)"},
    {Op::kSelect, "f32[2,3] select(condition, x, y)"},
    {Op::kClamp, "f32[2,3] clamp(z, x, limit)"},
    {Op::kBroadcast, "f32[2,2,3] broadcast(x), dimensions={1,2}"},
    {Op::kReshape, "f32[3,2] reshape(x)"},
    {Op::kBitcast, "f32[3,2] bitcast(x)"},
    {Op::kTranspose, "f32[3,2] transpose(x), dimensions={1,0}"},
    {Op::kSlice, "f32[1,2] slice(x), slice={[1:2], [0:3:2]}"},
    {Op::kReverse, "f32[2,3] reverse(x), dimensions={1}"},
    {Op::kConcatenate, "f32[4,3] concatenate(x, y), dimensions={0}"},
    {Op::kConcatInPlace, "f32[4,3] concat-in-place(x, y), dimensions={0}"},
    {Op::kPad, "f32[3,5] pad(x, z), padding=1_0x0_0_1"},
    {Op::kGather,
     "f32[2,3] gather(x, places), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=1, slice_sizes={1,3}"},
    {Op::kDynamicSlice, "f32[1,2] dynamic-slice(x, one, one), dynamic_slice_sizes={1,2}"},
    {Op::kDynamicUpdateSlice, "f32[2,3] dynamic-update-slice(x, row, one, zero)"},
    {Op::kScatter,
     "f32[2,3] scatter(x, places, y), update_window_dims={1}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"},
    {Op::kReduce, "f32[2] reduce(x, z), dimensions={1}, to_apply=largest"},
    {Op::kReduceWindow, "f32[2,2] reduce-window(x, z), window={size=1x2}, to_apply=largest"},
    {Op::kMap, "f32[2,3] map(x, y), dimensions={0,1}, to_apply=largest"},
    {Op::kDot, "f32[2,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
    {Op::kSort, "f32[2,3] sort(x), dimensions={1}, to_apply=less"},
};

/// `call` of the values `data`, which are x, y, row and z one after the other.
std::vector<double> results(const std::string& call, const std::vector<double>& data) {
  const Graph graph = parse_hlo(R"(HloModule m
largest { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  row = f32[1,3] parameter(2)
  z = f32[] parameter(3)
  condition = pred[2,3] constant({{1,0,1},{0,0,1}})
  places = s32[2] constant({1,0})
  zero = s32[] constant(0)
  one = s32[] constant(1)
  limit = f32[] constant(100)
  token = token[] after-all()
  ROOT r = )" + call + "\n}\n",
                                "test");
  std::vector<Literal> inputs;
  std::size_t next = 0;
  for (const NodeId parameter : graph.entry_computation().parameters) {
    Literal& input = inputs.emplace_back(Literal::zeros(graph.entry_computation().node(parameter).shape));
    for (std::int64_t i = 0; i < input.shape.elements_count(); ++i) input.set_double(i, data.at(next++));
  }
  const Literal result = evaluate(graph, inputs).at(0);
  std::vector<double> values;
  for (std::int64_t i = 0; i < result.shape.elements_count(); ++i) values.push_back(result.get_double(i));
  return values;
}

/// The example of an op whose elements are floats from floats; "" where there is none.
std::string example(const OpDef& row) {
  if (const auto call = kCalls.find(row.op); call != kCalls.end()) return call->second;
  // `real` of a real number is the number, `imag` nothing; of reduce-precision the attributes decide.
  constexpr Op kOthers[] = {Op::kReal, Op::kImag, Op::kReducePrecision, Op::kIsFinite, Op::kComplex};
  const bool floats = row.domain != Domain::kIntegral && row.domain != Domain::kBits &&
                      std::ranges::find(kOthers, row.op) == std::end(kOthers);
  const bool plain = is_elementwise(row.op) && (row.domain != Domain::kAny || row.op == Op::kCopy);
  if (!floats || (!plain && !row.moves_elements)) return "";
  constexpr const char* kOperands[] = {"", "x", "x, y"};
  return "f32[2,3] " + std::string(row.name) + "(" + kOperands[row.min_operands] + ")";
}

/// Distinct, of both signs, in no order.
const std::vector<double> kData = {0.5, -1.25, 3, 0.75, -2.5, 1.5, 7, -0.25, 0.125, 9, 2.25, -6, 4, 5, -3, 8};

TEST(OpMoves, ElementsComeFromOperandsWhateverTheirValues) {
  // Decreasing, exact in f32 for all values here, and no value is its own.
  const auto changed = [](double value) { return 40 - 2 * value; };
  std::vector<double> changed_data;
  for (const double value : kData) changed_data.push_back(changed(value));
  int moving = 0, computing = 0;
  for (const OpDef& row : op_table()) {
    const std::string call = example(row);
    ASSERT_TRUE(!call.empty() || !row.moves_elements) << row.name << " needs an example";
    if (call.empty()) continue;
    SCOPED_TRACE(call);
    std::vector<double> before = results(call, kData);
    const bool of_operands = std::ranges::all_of(
        before, [](double value) { return std::ranges::find(kData, value) != kData.end(); });
    for (double& value : before) value = changed(value);
    EXPECT_EQ(of_operands && results(call, changed_data) == before, row.moves_elements);
    ++(row.moves_elements ? moving : computing);
  }
  EXPECT_GT(moving, 10);
  EXPECT_GT(computing, 30);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
