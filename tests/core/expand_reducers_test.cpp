// Reducers up to conversions and of several operations, cumulative windows, collectives of one device and
// custom calls that only act: what `expand` makes of them, against the evaluator on the graph as written.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/evaluate/evaluator.h"
#include "core/evaluate/inputs.h"
#include "core/evaluate/judge.h"
#include "core/graph/window.h"
#include "core/hlo/hlo_text.h"
#include "core/passes/passes.h"

namespace stitchwork {
namespace TEST_FILE {

constexpr const char* kReducers =
    "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
    "max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }\n"
    "min { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] minimum(a, b) }\n"
    "mul { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] multiply(b, a) }\n"
    "bf16 { a = bf16[] parameter(0)  x = f32[] convert(a)  b = bf16[] parameter(1)  y = f32[] convert(b)\n"
    "  s = f32[] add(y, x)  ROOT r = bf16[] convert(s) }\n"
    "narrow { a = f32[] parameter(0)  x = bf16[] convert(a)  b = f32[] parameter(1)  y = bf16[] convert(b)\n"
    "  s = bf16[] add(y, x)  ROOT r = f32[] convert(s) }\n"
    "last { a = f32[] parameter(0)  b = f32[] parameter(1)  z = f32[] constant(0)\n"
    "  s = f32[] multiply(a, z)  ROOT r = f32[] add(s, b) }\n"
    "logaddexp { a = f32[] parameter(0)  b = f32[] parameter(1)  d = f32[] subtract(a, b)\n"
    "  n = pred[] compare(d, d), direction=NE  s = f32[] add(a, b)  m = f32[] maximum(a, b)\n"
    "  p = f32[] abs(d)  q = f32[] negate(p)  e = f32[] exponential(q)  l = f32[] log-plus-one(e)\n"
    "  t = f32[] add(m, l)  ROOT r = f32[] select(n, s, t) }\n"
    "minus { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] subtract(a, b) }\n";

Graph module_of(const std::string& body, const std::string& head = "HloModule m") {
  return parse_hlo(head + "\n" + kReducers + "ENTRY main {\n" + body + "\n}\n", "test.hlo");
}

int count(const Graph& graph, Op op) {
  const auto& nodes = graph.entry_computation().nodes;
  return static_cast<int>(std::ranges::count(nodes, op, &Node::op));
}

void expect_same(const Graph& graph, const Graph& changed) {
  validate(changed);
  const std::vector<Literal> inputs = generate_inputs(graph, 1);
  const CheckResult check = Judge(graph, inputs).check(evaluate(changed, inputs));
  EXPECT_TRUE(check.ok) << check.message;
}

std::optional<Op> reducer_named(const Graph& graph, const std::string& name) {
  for (std::size_t c = 0; c < graph.computations.size(); ++c)
    if (graph.computations[c].name == name) return simple_reducer(graph, static_cast<ComputationId>(c));
  return std::nullopt;
}

TEST(SimpleReducer, IsOneOperationUpToConversionsToAWiderTypeAndBack) {
  const Graph graph = module_of(
      "x = bf16[4] parameter(0)  z = bf16[] constant(0)\n"
      "r = bf16[] reduce(x, z), dimensions={0}, to_apply=bf16\n"
      "y = f32[4] parameter(1)  o = f32[] constant(0)\n"
      "q = f32[] reduce(y, o), dimensions={0}, to_apply=narrow\n"
      "p = f32[] reduce(y, o), dimensions={0}, to_apply=minus\n"
      "ROOT t = (bf16[], f32[], f32[]) tuple(r, q, p)");
  EXPECT_EQ(reducer_named(graph, "bf16"), Op::kAdd);
  // Rounded to fewer bits on the way, it is another operation.
  EXPECT_EQ(reducer_named(graph, "narrow"), std::nullopt);
  EXPECT_EQ(reducer_named(graph, "minus"), std::nullopt);
}

TEST(GeneralReducer, IsAppliedToWholeSlices) {
  for (const char* shape : {"[1,7] [7] {0}", "[4,33] [4] {1}", "[5,6,7] [6] {0,2}", "[3,16] [] {0,1}",
                            "[2,0] [2] {1}", "[64,2,3] [2,3] {0}"}) {
    const std::string text = shape;
    const std::string from = text.substr(0, text.find(' ')),
                      to = text.substr(from.size() + 1, text.rfind(' ') - from.size() - 1),
                      dimensions = text.substr(text.rfind(' ') + 1);
    const Graph graph =
        module_of(fmt::format("x = f32{} parameter(0)  z = f32[] constant(-inf)\n"
                              "ROOT r = f32{} reduce(x, z), dimensions={}, to_apply=logaddexp",
                              from, to, dimensions));
    const Graph changed = canonicalize(graph);
    EXPECT_EQ(count(changed, Op::kReduce), 0) << text;
    expect_same(graph, changed);
  }
}

TEST(GeneralReducer, KeepsTheOrderOfWhatItCombines) {
  const Graph graph = module_of(
      "x = f32[37] parameter(0)  z = f32[] constant(0)\n"
      "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=last");
  const Graph changed = canonicalize(graph);
  EXPECT_EQ(count(changed, Op::kReduce), 0);
  expect_same(graph, changed);
  EXPECT_NE(changed.entry_computation().find("r"), kNoNode);
}

TEST(GeneralReducer, ThatIsNotAssociativeStays) {
  const Graph graph = module_of(
      "x = f32[37] parameter(0)  z = f32[] constant(0)\n"
      "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=minus");
  EXPECT_EQ(count(canonicalize(graph), Op::kReduce), 1);
}

TEST(GeneralReducer, RunsInWindowsOfAnyShape) {
  for (const char* window :
       {"f32[6,9] {size=1x3}", "f32[8,13] {size=3x1 pad=1_1x1_1}",
        "f32[4,6] {size=2x5 stride=2x2 pad=0_0x2_3}", "f32[8,5] {size=1x4 rhs_dilate=1x2}",
        "f32[8,19] {size=1x3 lhs_dilate=1x2 pad=0_0x1_1}"}) {
    const std::string text = window;
    const std::size_t at = text.find(' ');
    // The result's shape is what the window says of [8,11].
    Node node;
    node.attrs.other = {{"window", text.substr(at + 1)}};
    const std::vector<WindowDim> dims = window_of(node, 2);
    const Graph graph = module_of(
        fmt::format("x = f32[8,11] parameter(0)  z = f32[] constant(-inf)\n"
                    "ROOT r = f32[{},{}] reduce-window(x, z), window={}, to_apply=logaddexp",
                    window_positions(8, dims[0]), window_positions(11, dims[1]), text.substr(at + 1)));
    const Graph changed = canonicalize(graph);
    EXPECT_EQ(count(changed, Op::kReduceWindow), 0) << text;
    expect_same(graph, changed);
  }
}

struct Scan {
  const char* reducer;
  const char* type;
  const char* initial;
};

class CumulativeWindow : public ::testing::TestWithParam<Scan> {};

TEST_P(CumulativeWindow, IsATreeOfWindowsOfSixteen) {
  const Scan& scan = GetParam();
  for (const int length : {16, 17, 31, 32, 100, 256, 257, 300})
    for (const bool reverse : {false, true})
      for (const int dim : {0, 1}) {
        const std::string dims = dim == 0 ? fmt::format("{},3", length) : fmt::format("3,{}", length);
        const std::string pad = reverse ? fmt::format("0_{}", length - 1) : fmt::format("{}_0", length - 1);
        const std::string window = dim == 0 ? fmt::format("size={}x1 pad={}x0_0", length, pad)
                                            : fmt::format("size=1x{} pad=0_0x{}", length, pad);
        const Graph graph =
            module_of(fmt::format("x = {0}[{1}] parameter(0)  z = {0}[] constant({2})\n"
                                  "ROOT r = {0}[{1}] reduce-window(x, z), window={{{3}}}, to_apply={4}",
                                  scan.type, dims, scan.initial, window, scan.reducer));
        const Graph changed = canonicalize(graph);
        for (const Node& node : changed.entry_computation().nodes) {
          if (node.op != Op::kReduceWindow) continue;
          for (const WindowDim& d : window_of(node, node.shape.rank())) EXPECT_LE(d.size, 16);
        }
        EXPECT_NE(changed.entry_computation().find("r"), kNoNode);
        EXPECT_TRUE(equal(canonicalize(changed), changed));
        SCOPED_TRACE(window);
        expect_same(graph, changed);
      }
}

INSTANTIATE_TEST_SUITE_P(Reducers, CumulativeWindow,
                         ::testing::Values(Scan{"add", "f32", "0"}, Scan{"add", "f32", "5"},
                                           Scan{"mul", "f32", "1"}, Scan{"max", "f32", "-inf"},
                                           Scan{"max", "f32", "0.25"}, Scan{"min", "s32", "2147483647"},
                                           Scan{"logaddexp", "f32", "-inf"}, Scan{"logaddexp", "f32", "0"},
                                           Scan{"last", "f32", "0"}));

TEST(NarrowCumulativeWindow, AccumulatesWidelyInOneWindow) {
  const Graph graph = module_of(
      "x = bf16[300] parameter(0)  z = bf16[] constant(0)\n"
      "ROOT r = bf16[300] reduce-window(x, z), window={size=300 pad=299_0}, to_apply=bf16");
  const Graph changed = canonicalize(graph);
  EXPECT_EQ(count(changed, Op::kReduceWindow), 1);
  expect_same(graph, changed);
}

TEST(Collectives, OfOneDeviceGiveWhatTheyAreGiven) {
  const Graph graph = module_of(
      "x = f32[4,6] parameter(0)\n"
      "a = f32[4,6] all-reduce(x), channel_id=1, replica_groups={{0}}, use_global_device_ids=true, "
      "to_apply=add\n"
      "b = f32[4,6] all-gather(a), channel_id=1, replica_groups=[1,1]<=[1], dimensions={0}, "
      "use_global_device_ids=true\n"
      "c = f32[4,6] reduce-scatter(b), replica_groups={}, dimensions={0}, to_apply=add\n"
      "d = (f32[4,6]) all-to-all(c), replica_groups={{0}}\n"
      "e = f32[4,6] get-tuple-element(d), index=0\n"
      "f = f32[4,6] collective-permute(e), source_target_pairs={{0,0}}\n"
      "p = u32[] partition-id()  g = f32[] convert(p)  h = f32[4,6] broadcast(g), dimensions={}\n"
      "ROOT r = f32[4,6] add(f, h)");
  const Graph changed = canonicalize(graph);
  EXPECT_EQ(count(changed, Op::kAllReduce) + count(changed, Op::kAllGather) +
                count(changed, Op::kReduceScatter) + count(changed, Op::kAllToAll) +
                count(changed, Op::kCollectivePermute) + count(changed, Op::kPartitionId),
            0);
  const std::vector<Literal> inputs = generate_inputs(graph, 1);
  EXPECT_EQ(evaluate(changed, inputs)[0], inputs[0]);
}

TEST(Collectives, AmongSeveralDevicesStay) {
  const char* text =
      "x = f32[4] parameter(0)\nROOT a = f32[4] all-reduce(x), replica_groups={}, to_apply=add";
  EXPECT_EQ(count(canonicalize(module_of(text, "HloModule m, replica_count=2")), Op::kAllReduce), 1);
  const char* pair =
      "x = f32[4] parameter(0)\nROOT a = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add";
  EXPECT_EQ(count(canonicalize(module_of(pair, "HloModule m, replica_count=2")), Op::kAllReduce), 1);
  // One replica each, and two partitions of it.
  const char* of_replicas =
      "x = f32[4] parameter(0)\nROOT a = f32[4] all-reduce(x), channel_id=1, replica_groups={{0}}, "
      "to_apply=add";
  EXPECT_EQ(count(canonicalize(module_of(of_replicas, "HloModule m, num_partitions=2")), Op::kAllReduce), 1);
}

TEST(CustomCalls, ThatGiveNoArrayAreLeftOut) {
  const Graph graph = module_of(
      "t = token[] parameter(0)  x = f32[4] parameter(1)\n"
      "p = () custom-call(x), custom_call_target=\"xla_ffi_python_cpu_callback\", "
      "custom_call_has_side_effect=true\n"
      "q = token[] custom-call(t, x), custom_call_target=\"other\", custom_call_has_side_effect=true\n"
      "y = f32[4] negate(x)\n"
      "ROOT r = (token[], f32[4]) tuple(q, y)");
  EXPECT_THAT(left_out_effects(graph),
              ::testing::ElementsAre("p (xla_ffi_python_cpu_callback)", "q (other)"));
  const Graph changed = canonicalize(graph);
  EXPECT_EQ(count(changed, Op::kCustomCall), 0);
  validate(changed);
}

TEST(CustomCalls, AreRefusedByTheNameOfWhatTheyCall) {
  const Graph graph = module_of(
      "x = f32[4] parameter(0)\nROOT c = f32[4] custom-call(x), custom_call_target=\"lapack_sgetrf\"");
  try {
    evaluate(graph, generate_inputs(graph, 1));
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("lapack_sgetrf"));
  }
}

}  // namespace TEST_FILE
}  // namespace stitchwork
