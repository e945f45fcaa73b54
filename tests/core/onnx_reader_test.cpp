// What the reader of ONNX models takes, and how it refuses the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/evaluate/evaluator.h"
#include "core/onnx/onnx.h"
#include "core/onnx/open_model.h"
#include "core/onnx/tensor.h"
#include "tests/support/onnx_model.h"

namespace stitchwork {
namespace TEST_FILE {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// What reading says, "file: message; hint", or "" if it reads.
std::string refusal(const OnnxModel& m, const OnnxOptions& options = {}, const std::string& folder = {}) {
  try {
    parse_onnx(m.bytes(), "m.onnx", options, folder);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

Literal floats(const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
  Literal literal = Literal::zeros(Shape::array(DType::kF32, dims));
  for (std::size_t i = 0; i < values.size(); ++i) literal.set_double(static_cast<std::int64_t>(i), values[i]);
  return literal;
}

std::vector<double> numbers(const Literal& literal) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < literal.shape.elements_count(); ++i) values.push_back(literal.get_double(i));
  return values;
}

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

// --- Tensors.

/// Elements of every type, in the field that ONNX keeps it in and as raw bytes, give the same literal.
TEST(OnnxTensors, TypedFieldsAndRawBytesAreTheSame) {
  struct Case {
    int type;
    DType dtype;
  };
  for (const auto& [type, dtype] :
       {Case{1, DType::kF32}, Case{2, DType::kU8}, Case{3, DType::kS8}, Case{4, DType::kU16},
        Case{5, DType::kS16}, Case{6, DType::kS32}, Case{7, DType::kS64}, Case{9, DType::kPred},
        Case{10, DType::kF16}, Case{11, DType::kF64}, Case{12, DType::kU32}, Case{13, DType::kU64},
        Case{16, DType::kBF16}}) {
    Literal expected = Literal::zeros(Shape::array(dtype, {3}));
    for (int i = 0; i < 3; ++i) expected.set_int(i, i % 2);
    onnx::TensorProto raw, typed;
    for (onnx::TensorProto* tensor : {&raw, &typed}) {
      tensor->set_data_type(type);
      tensor->add_dims(3);
    }
    raw.set_raw_data(expected.bytes.data(), expected.bytes.size());
    for (int i = 0; i < 3; ++i) {
      const int one = i % 2;
      if (dtype == DType::kF32)
        typed.add_float_data(static_cast<float>(one));
      else if (dtype == DType::kF64)
        typed.add_double_data(one);
      else if (dtype == DType::kS64)
        typed.add_int64_data(one);
      else if (dtype == DType::kU64 || dtype == DType::kU32)
        typed.add_uint64_data(static_cast<std::uint64_t>(one));
      else if (dtype == DType::kF16)
        typed.add_int32_data(one == 1 ? 0x3c00 : 0);
      else if (dtype == DType::kBF16)
        typed.add_int32_data(one == 1 ? 0x3f80 : 0);
      else
        typed.add_int32_data(one);
    }
    EXPECT_EQ(onnx_reader::read_tensor(raw, {}), expected) << name(dtype);
    EXPECT_EQ(onnx_reader::read_tensor(typed, {}), expected) << name(dtype);
  }
}

TEST(OnnxTensors, SizesThatDoNotFitAreRefused) {
  onnx::TensorProto tensor = OnnxModel::integers("t", {2, 2}, {1, 2, 3});
  EXPECT_THROW(onnx_reader::read_tensor(tensor, {}), Error);
  tensor = OnnxModel::integers("t", {-1}, {});
  EXPECT_THROW(onnx_reader::read_tensor(tensor, {}), Error);
  tensor = OnnxModel::integers("t", {std::int64_t{1} << 32, std::int64_t{1} << 32}, {});
  EXPECT_THROW(onnx_reader::read_tensor(tensor, {}), Error);
  tensor = OnnxModel::integers("t", {0, std::int64_t{1} << 62, 4}, {});
  EXPECT_THROW(onnx_reader::read_tensor(tensor, {}), Error);
}

TEST(OnnxTensors, ElementsOutsideTheirTypeAreRefused) {
  onnx::TensorProto tensor;
  tensor.set_name("t");
  tensor.set_data_type(onnx::TensorProto::INT8);
  tensor.add_dims(1);
  tensor.add_int32_data(300);
  try {
    onnx_reader::read_tensor(tensor, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "tensor 't' has 300 in int32_data, outside INT8");
  }
}

/// A folder of its own that goes away.
struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("stitchwork_onnx_{}", ::getpid());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

OnnxModel external(const std::string& location, const std::string& offset = "",
                   const std::string& length = "") {
  OnnxModel m;
  m.input("x", {2}).output("y");
  onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair{"location", location}, {"offset", offset}, {"length", length}})
    if (!value.empty()) {
      auto* entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  m.initializer(tensor);
  m.node("Add", {"x", "w"}, {"y"});
  return m;
}

TEST(OnnxTensors, ExternalDataLieBesideTheModel) {
  const Folder folder;
  const Literal data = floats({4}, {1, 2, 3, 4});
  write_file((folder.path / "data.bin").string(), {reinterpret_cast<const char*>(data.bytes.data()), 16});
  write_file((folder.path / "m.onnx").string(), external("data.bin", "8", "8").bytes());
  const Graph graph = read_onnx((folder.path / "m.onnx").string());
  EXPECT_EQ(numbers(evaluate(graph, std::vector{floats({2}, {10, 20})}).at(0)),
            (std::vector<double>{13, 24}));
}

TEST(OnnxTensors, ExternalDataOutOfBoundsOrOutsideTheFolderAreRefused) {
  const Folder folder;
  const std::string inside = (folder.path / "models").string();
  fs::create_directories(inside);
  write_file(inside + "/data.bin", "12345678");
  write_file((folder.path / "secret.bin").string(), "12345678");
  fs::create_symlink(folder.path / "secret.bin", inside + "/link.bin");
  const auto said = [&](const OnnxModel& m) { return refusal(m, {}, inside); };
  EXPECT_EQ(said(external("data.bin")), "");
  EXPECT_THAT(said(external("data.bin", "4")), HasSubstr("needs bytes 4 to 12 of 'data.bin', which has 8"));
  EXPECT_THAT(said(external("data.bin", "18446744073709551615")), HasSubstr("not a number of bytes"));
  EXPECT_THAT(said(external("data.bin", "9223372036854775807")), HasSubstr("which has 8"));
  EXPECT_THAT(said(external("data.bin", "0", "4")),
              HasSubstr("has 4 bytes in external_data, its type and dims need 8"));
  EXPECT_THAT(said(external("absent.bin")), HasSubstr("not beside the model"));
  EXPECT_THAT(said(external("../secret.bin")), HasSubstr("outside the model's folder"));
  EXPECT_THAT(said(external((folder.path / "secret.bin").string())), HasSubstr("outside the model's folder"));
  EXPECT_THAT(said(external("link.bin")), HasSubstr("outside the model's folder"));
  EXPECT_THAT(said(external("")), HasSubstr("external_data names none"));
  EXPECT_THAT(refusal(external("data.bin")), HasSubstr("and the model in none"));
}

TEST(OnnxReader, CompressedFilesAreRead) {
  const Folder folder;
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
