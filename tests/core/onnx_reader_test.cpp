// What the reader of ONNX models takes, and how it refuses the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/evaluate/evaluator.h"
#include "core/onnx/onnx.h"
#include "core/onnx/open_model.h"
#include "tests/support/onnx_reading.h"

namespace stitchwork {
namespace TEST_FILE {

using testing::external;
using testing::floats;
using ::testing::HasSubstr;
using testing::numbers;
using testing::refusal;

std::vector<double> run(const OnnxModel& m, const std::vector<Literal>& inputs,
                        const OnnxOptions& options = {}) {
  return numbers(evaluate(parse_onnx(m.bytes(), "m.onnx", options), inputs).at(0));
}

OnnxModel one_node(const std::string& op, const std::vector<OnnxModel::Attribute>& attributes = {},
                   int version = 17) {
  OnnxModel m(version);
  m.input("x", {2, 3}).output("y");
  m.node(op, {"x"}, {"y"}, attributes).set_name("the_node");
  return m;
}

TEST(OnnxReader, AnUnknownOperatorIsNamedWithItsNode) {
  EXPECT_EQ(refusal(one_node("Frobnicate")),
            "m.onnx: node 'the_node' (Frobnicate): this operator is not supported");
}

TEST(OnnxReader, AnAttributeThatNobodyLooksAtIsRefused) {
  EXPECT_EQ(refusal(one_node("Relu", {{"strength", 2.0}})),
            "m.onnx: node 'the_node' (Relu): attribute strength is not supported in operator set 17");
}

TEST(OnnxReader, AttributesTooLargeForAnyAxisCountOrExtentAreRefused) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(refusal(one_node("Scan", {{"num_scan_inputs", kLeast}})),
            "m.onnx: node 'the_node' (Scan): attribute num_scan_inputs has -9223372036854775808, outside "
            "[-1099511627776, 1099511627776]");
  EXPECT_THAT(refusal(one_node("Softmax", {{"axis", kMost}})),
              HasSubstr("attribute axis has 9223372036854775807"));
  EXPECT_EQ(refusal(one_node("Shape", {{"start", kLeast}, {"end", kMost}})), "");  // bounds are clamped
}

TEST(OnnxReader, AnInputThatNobodyLooksAtIsRefused) {
  OnnxModel m;
  m.input("x", {2}).output("y");
  m.node("Relu", {"x", "x"}, {"y"});
  EXPECT_EQ(refusal(m), "m.onnx: node 'y' (Relu): input 1 ('x') is not supported in operator set 17");
}

TEST(OnnxReader, AnOperatorOfALaterSetIsRefused) {
  EXPECT_THAT(refusal(one_node("Gelu")), HasSubstr("operator set 17 has no such operator, it came with 20"));
  EXPECT_EQ(refusal(one_node("Gelu", {}, 20)), "");
}

TEST(OnnxReader, OperatorSetsOutsideTheRangeAreRefused) {
  EXPECT_THAT(refusal(one_node("Relu", {}, 6)), HasSubstr("operator set 6 is not read, 7 to 28 are"));
  EXPECT_THAT(refusal(one_node("Relu", {}, 29)), HasSubstr("operator set 29 is not read"));
}

TEST(OnnxReader, AValueThatNobodyGivesIsNamed) {
  OnnxModel m;
  m.output("y");
  m.node("Relu", {"ghost"}, {"y"});
  EXPECT_THAT(refusal(m), HasSubstr("'ghost' (input) is given by no input, initializer or node before it"));
}

TEST(OnnxReader, BytesThatAreNoModelAreRefused) {
  for (const char* bytes : {"", "hello", "\x08\x08"}) {
    try {
      parse_onnx(bytes, "m.onnx");
      FAIL() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "not an ONNX model");
    }
  }
}

TEST(OnnxReader, AShapeComputedAtRunTimeAsksForTheInputsValue) {
  OnnxModel m;
  m.input("x", {2, 3}).input("shape", {2}, onnx::TensorProto::INT64).output("y");
  m.node("Reshape", {"x", "shape"}, {"y"});
  EXPECT_THAT(refusal(m), HasSubstr("--value shape=2,3"));
  const Graph graph = parse_onnx(m.bytes(), "m.onnx", {{}, {{"shape", "3,-1"}}});
  EXPECT_EQ(graph.entry_computation().parameters.size(), 1U);
  EXPECT_EQ(to_text(graph.entry_computation().node(graph.entry_computation().root).shape), "f32[3,2]");
  EXPECT_THAT(refusal(m, {{}, {{"shape", "3,two"}}}), HasSubstr("'two' is no number"));
  EXPECT_THAT(refusal(m, {{}, {{"size", "3"}}}), HasSubstr("--value size: the model has no such input"));
}

TEST(OnnxReader, AValueThatDecidesAShapeIsAskedForWithItsTypeAndOnesToBeginWith) {
  OnnxModel m;
  m.input("x", {2, 3}).input("shape", {2}, onnx::TensorProto::INT64).output("y");
  m.node("Reshape", {"x", "shape"}, {"y"});
  try {
    parse_onnx(m.bytes(), "m.onnx");
    FAIL();
  } catch (const OpenModel& open) {
    const std::vector<OnnxQuestion> expected = {{OnnxQuestion::Kind::kValue, "shape", "s64[2]", "1,1"}};
    EXPECT_EQ(open.questions(), expected);
    EXPECT_THAT(open.message(), HasSubstr("decides the shape of the result"));
  }
  EXPECT_EQ(refusal(m, {{}, {{"shape", "3,2"}}}), "");
}

TEST(OnnxReader, ADimensionOfMinusOneHasNoSize) {
  OnnxModel model;
  model.input("x", {-1, 4}).output("y");
  model.node("Relu", {"x"}, {"y"});
  EXPECT_THROW(parse_onnx(model.bytes(), "m.onnx"), OpenModel);
  const Graph graph = parse_onnx(model.bytes(), "m.onnx", onnx_options({"x[0]=2"}, {}));
  const Computation& entry = graph.entry_computation();
  EXPECT_EQ(entry.node(entry.root).shape.dims, (std::vector<std::int64_t>{2, 4}));
}

TEST(OnnxReader, ADimensionWithoutANameIsCalledAfterItsPlace) {
  OnnxModel m;
  m.input("x", {2, "?"}).output("y");
  m.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->clear_value();
  m.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(refusal(m), HasSubstr("dimension 'x[1]' of input 'x' has no size; give it: --dim x[1]=N"));
  EXPECT_EQ(refusal(m, {{{"x[1]", 5}}, {}}), "");
}

TEST(OnnxReader, OptionsOfTheCommandLineAreNameAndValue) {
  const OnnxOptions options = onnx_options({"batch=8", "a=b=2"}, {"shape=1,2"});
  EXPECT_EQ(options.dims.at("batch"), 8);
  EXPECT_EQ(options.dims.at("a=b"), 2);
  EXPECT_EQ(std::get<std::string>(options.values.at("shape")), "1,2");
  for (const char* wrong : {"batch", "batch=", "batch=x", "=3", "batch=-1", "batch=3 "})
    EXPECT_THROW(onnx_options({wrong}, {}), Error) << wrong;
  EXPECT_THROW(onnx_options({"a=1", "a=2"}, {}), Error);
  EXPECT_THROW(onnx_options({}, {"shape"}), Error);
}

// --- Files.

TEST(OnnxReader, CompressedFilesAreRead) {
  const testing::OnnxFolder folder;
  const std::string path = (folder.path / "m.onnx.gz").string(), bytes = one_node("Relu").bytes();
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  EXPECT_TRUE(is_onnx_path(path));
  EXPECT_EQ(read_onnx(path).source_sha256, parse_onnx(bytes, "m.onnx").source_sha256);
}

// --- Folding and its limits.

TEST(OnnxReader, HugeArraysAreRefusedNotAllocated) {
  OnnxModel m;
  m.output("y");
  m.initializer(OnnxModel::integers("shape", {2}, {std::int64_t{1} << 30, std::int64_t{1} << 30}));
  m.node("ConstantOfShape", {"shape"}, {"y"});
  EXPECT_THAT(refusal(m),
              HasSubstr("node 'y' (ConstantOfShape): an array of dimensions [1073741824,1073741824]"));
  OnnxModel tile;
  tile.input("x", {2}).output("y");
  tile.initializer(OnnxModel::integers("repeats", {1}, {std::int64_t{1} << 60}));
  tile.node("Tile", {"x", "repeats"}, {"y"});
  EXPECT_THAT(refusal(tile), HasSubstr("node 'y' (Tile)"));
}

TEST(OnnxReader, ListsAsLongAsAHugeInputAreRefusedNotMade) {
  OnnxModel split;
  split.input("x", {3, 2147483647}).output("y");
  split.node("SplitToSequence", {"x"}, {"y"}, {{"axis", std::int64_t{1}}});
  EXPECT_THAT(refusal(split), HasSubstr("node 'y' (SplitToSequence): 2147483647 parts are more than 65536"));
  OnnxModel pool;
  pool.input("x", {1, 1, 2147483647}).output("y");
  pool.node("AveragePool", {"x"}, {"y"}, {{"kernel_shape", std::vector<std::int64_t>{2}}});
  EXPECT_THAT(refusal(pool), HasSubstr("node 'y' (AveragePool)"));
}

TEST(OnnxReader, LargeKnownArraysStayAsTheOpsThatMakeThem) {
  OnnxModel m;
  m.input("x", {512, 512}).output("y");
  m.initializer(OnnxModel::integers("shape", {2}, {512, 512}));
  auto* value = m.node("ConstantOfShape", {"shape"}, {"ones"}).add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  value->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  value->mutable_t()->add_dims(1);
  value->mutable_t()->add_float_data(1);
  m.node("Trilu", {"ones"}, {"mask"}, {{"upper", std::int64_t{0}}});
  m.node("Mul", {"x", "mask"}, {"y"});
  const Graph graph = parse_onnx(m.bytes(), "m.onnx");
  for (const Node& node : graph.entry_computation().nodes) {
    if (node.op != Op::kConstant) continue;
    EXPECT_LE(node.shape.elements_count(), 1) << node.name;
  }
}

// --- Structure.

TEST(OnnxReader, FunctionsAreReadInPlaceOfTheirCalls) {
  OnnxModel m;
  m.input("x", {2}).output("y");
  auto* import = m.model.add_opset_import();
  import->set_domain("mine");
  import->set_version(1);
  auto* function = m.model.add_functions();
  function->set_name("Leaky");
  function->set_domain("mine");
  function->add_input("a");
  function->add_output("b");
  function->add_attribute("slope");
  *function->add_opset_import() = m.model.opset_import(0);
  auto* inner = function->add_node();
  inner->set_op_type("LeakyRelu");
  inner->add_input("a");
  inner->add_output("b");
  auto* attribute = inner->add_attribute();
  attribute->set_name("alpha");
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_ref_attr_name("slope");
  m.node("Leaky", {"x"}, {"y"}, {{"slope", 0.5}}).set_domain("mine");
  EXPECT_EQ(run(m, {floats({2}, {-2, 4})}), (std::vector<double>{-1, 4}));
  // Not given, the inner attribute is absent, and LeakyRelu's own default holds.
  m.graph().mutable_node(0)->clear_attribute();
  EXPECT_EQ(run(m, {floats({2}, {-100, 4})}), (std::vector<double>{-1, 4}));
}

TEST(OnnxReader, FunctionsThatCallThemselvesAreRefused) {
  OnnxModel m;
  m.input("x", {2}).output("y");
  auto* import = m.model.add_opset_import();
  import->set_domain("mine");
  import->set_version(1);
  auto* function = m.model.add_functions();
  function->set_name("Again");
  function->set_domain("mine");
  function->add_input("a");
  function->add_output("b");
  auto* inner = function->add_node();
  inner->set_op_type("Again");
  inner->set_domain("mine");
  inner->add_input("a");
  inner->add_output("b");
  m.node("Again", {"x"}, {"y"}).set_domain("mine");
  EXPECT_THAT(refusal(m), HasSubstr("nested more than 64 deep"));
}

TEST(OnnxReader, SeveralOutputsAreATupleInTheirOrder) {
  OnnxModel m(18);
  m.input("x", {4}).output("b").output("a");
  m.node("Split", {"x"}, {"a", "b"}, {{"num_outputs", std::int64_t{2}}});
  const std::vector<Literal> results =
      evaluate(parse_onnx(m.bytes(), "m.onnx"), std::vector{floats({4}, {1, 2, 3, 4})});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(numbers(results[0]), (std::vector<double>{3, 4}));
  EXPECT_EQ(numbers(results[1]), (std::vector<double>{1, 2}));
}

TEST(OnnxReader, AnInitializerThatIsAlsoAnInputIsItsValue) {
  OnnxModel m(8);
  m.input("x", {2}).input("w", {2}).output("y");
  m.initializer("w", floats({2}, {5, 6}));
  m.node("Add", {"x", "w"}, {"y"});
  EXPECT_EQ(run(m, {floats({2}, {1, 1})}), (std::vector<double>{6, 7}));
}

/// A loop's body: y = x * 2, going on while the sum is below 100.
onnx::GraphProto doubling_body(bool stops_by_value) {
  OnnxModel body;
  body.input("i", {}, onnx::TensorProto::INT64).input("go_in", {}, onnx::TensorProto::BOOL).input("v", {2});
  body.node("Add", {"v", "v"}, {"v_out"});
  if (stops_by_value) {
    body.node("ReduceSum", {"v_out"}, {"sum"}, {{"keepdims", std::int64_t{0}}});
    body.constant("limit", 100.0F);
    body.node("Less", {"sum", "limit"}, {"go"});
  } else {
    body.node("Identity", {"go_in"}, {"go"});
  }
  body.output("go").output("v_out");
  return body.graph();
}

OnnxModel loop(bool stops_by_value, std::int64_t limit) {
  OnnxModel m;
  m.input("x", {2}).output("y");
  m.initializer(OnnxModel::integers("limit", {}, {limit}));
  auto* body = m.node("Loop", {stops_by_value ? "" : "limit", "", "x"}, {"y"}).add_attribute();
  body->set_name("body");
  body->set_type(onnx::AttributeProto::GRAPH);
  *body->mutable_g() = doubling_body(stops_by_value);
  return m;
}

TEST(OnnxControl, ALoopOfKnownLengthIsUnrolledOrAWhileLoopAndGivesTheSame) {
  EXPECT_EQ(run(loop(false, 3), {floats({2}, {1, 2})}), (std::vector<double>{8, 16}));
  EXPECT_EQ(run(loop(false, 70), {floats({2}, {1, 2})}), (std::vector<double>{0x1p70, 0x1p71}));
  EXPECT_EQ(run(loop(false, 0), {floats({2}, {1, 2})}), (std::vector<double>{1, 2}));
}

TEST(OnnxControl, ALoopThatStopsByItsValuesIsAWhileLoop) {
  EXPECT_EQ(run(loop(true, 0), {floats({2}, {1, 2})}), (std::vector<double>{64, 128}));
}

/// A loop of `n` iterations that an input tells; `body` has its index "i" and gives "go" and "v_out", a value
/// that is carried, or with `scans` an output of each iteration.
OnnxModel loop_of_input(OnnxModel body, bool scans) {
  OnnxModel m;
  m.input("n", {}, onnx::TensorProto::INT64).input("x", {2}).output("y");
  auto* attribute =
      (scans ? m.node("Loop", {"n", ""}, {"y"}) : m.node("Loop", {"n", "", "x"}, {"y"})).add_attribute();
  attribute->set_name("body");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  *attribute->mutable_g() = body.graph();
  return m;
}

TEST(OnnxControl, ALoopWhoseLengthDecidesAShapeAsksForTheInputThatTellsIt) {
  OnnxModel stacks;
  stacks.input("i", {}, onnx::TensorProto::INT64).input("go_in", {}, onnx::TensorProto::BOOL);
  stacks.node("Identity", {"go_in"}, {"go"});
  stacks.node("Add", {"x", "x"}, {"v_out"});
  stacks.output("go").output("v_out");
  const OnnxModel scans = loop_of_input(stacks, true);
  EXPECT_THAT(refusal(scans), HasSubstr("--value n="));
  EXPECT_EQ(run(scans, {floats({2}, {1, 2})}, {{}, {{"n", "3"}}}), (std::vector<double>{2, 4, 2, 4, 2, 4}));

  OnnxModel counts;  // the sum of 0 .. i - 1 is added
  counts.input("i", {}, onnx::TensorProto::INT64).input("go_in", {}, onnx::TensorProto::BOOL).input("v", {2});
  counts.node("Identity", {"go_in"}, {"go"});
  counts.initializer(OnnxModel::integers("from", {}, {0})).initializer(OnnxModel::integers("step", {}, {1}));
  counts.node("Range", {"from", "i", "step"}, {"range"});
  counts.node("ReduceSum", {"range"}, {"sum"}, {{"keepdims", std::int64_t{0}}});
  counts.node("Cast", {"sum"}, {"float"}, {{"to", std::int64_t{onnx::TensorProto::FLOAT}}});
  counts.node("Add", {"v", "float"}, {"v_out"});
  counts.output("go").output("v_out");
  const OnnxModel carried = loop_of_input(counts, false);
  EXPECT_THAT(refusal(carried), HasSubstr("--value n="));
  EXPECT_EQ(run(carried, {floats({2}, {1, 2})}, {{}, {{"n", "4"}}}), (std::vector<double>{5, 6}));
}

TEST(OnnxControl, AnIfOfAnUnknownConditionIsAConditionalThatSeesOuterValues) {
  OnnxModel m;
  m.input("x", {2}).input("c", {}, onnx::TensorProto::BOOL).output("y");
  auto& node = m.node("If", {"c"}, {"y"});
  for (const std::string name : {"then_branch", "else_branch"}) {
    OnnxModel branch;
    branch.node(name == "then_branch" ? "Neg" : "Abs", {"x"}, {"r"});
    branch.output("r");
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    *attribute->mutable_g() = branch.graph();
  }
  Literal condition = Literal::zeros(Shape::array(DType::kPred, {}));
  EXPECT_EQ(run(m, {floats({2}, {-1, 2}), condition}), (std::vector<double>{1, 2}));
  condition.set_int(0, 1);
  EXPECT_EQ(run(m, {floats({2}, {-1, 2}), condition}), (std::vector<double>{1, -2}));
  EXPECT_EQ(run(m, {floats({2}, {-1, 2})}, {{}, {{"c", "1"}}}), (std::vector<double>{1, -2}));
}

TEST(OnnxMutation, DamagedModelsGiveAGraphOrAnError) {
  const std::string texts[] = {loop(true, 3).bytes(), loop(false, 70).bytes(), external("data.bin").bytes(),
                               one_node("Softmax", {{"axis", std::int64_t{1}}}).bytes()};
  std::mt19937 random(1);  // fixed: the test is the same every time
  int refused = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    std::string damaged = texts[random() % std::size(texts)];
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1);
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), 1 + random() % 8));
      }
      if (damaged.empty()) damaged = "x";
    }
    try {
      parse_onnx(damaged, "damaged.onnx");
    } catch (const Error& error) {
      EXPECT_EQ(error.file(), "damaged.onnx") << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);
}

}  // namespace TEST_FILE
}  // namespace stitchwork
